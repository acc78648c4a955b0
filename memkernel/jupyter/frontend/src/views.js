// The views by the widget's `kind`, and their styles.
import { storeBrowser } from "./browser/view.js";
import browser from "./browser/browser.css";
import { storeDiff } from "./compare/view.js";
import compare from "./compare/compare.css";
import { versionDiff } from "./diff/view.js";
import diff from "./diff/diff.css";
import { agentRun } from "./run/view.js";
import run from "./run/run.css";
import { sandboxPanel } from "./sandbox/view.js";
import sandbox from "./sandbox/sandbox.css";

export const VIEWS = {
  browser: storeBrowser,
  compare: storeDiff,
  diff: versionDiff,
  run: agentRun,
  sandbox: sandboxPanel,
};

export const STYLES = [diff, browser, run, sandbox, compare];
