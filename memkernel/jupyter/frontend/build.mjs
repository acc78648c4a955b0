// Builds src/index.js into ../static/widgets.js, one file with its style inside: node build.mjs [OUTFILE]
import { build, transform } from "esbuild";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

// Custom properties that no script names: in the bundle each has a letter.
const PROPERTIES = "text page faint head line came went came-word went-word bad tag mono focus".split(" ");
const PROPERTY = new RegExp(`--(${PROPERTIES.join("|")})(?![a-z-])`, "g");
const letter = (_, name) => `--${String.fromCharCode(97 + PROPERTIES.indexOf(name))}`;

// The same for names of ours that neither Python nor the browser knows: a test compares with Python's.
const NAMES = `actorId actorType attempt button compareWith dispose element elements focusTree
  frame inPlace isAsking keysWithin leave lookAt markBase onClose onDrawn onEvent onPainted
  operation paint prefetch questions redactedAt redactedBy reread restMs reveal root showNext shown
  siblings stepMs timeline toNewest toWaiting toggleCalls update updatedAt`.split(/\s+/);

/** A stylesheet is its text, without what only people read. */
const stylesheets = {
  name: "stylesheets",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const options = { loader: "css", minify: true, charset: "utf8" };
      const { code } = await transform(await readFile(path, "utf8"), options);
      return { contents: code.trim().replace(PROPERTY, letter), loader: "text" };
    });
  },
};

await build({
  absWorkingDir: here,
  entryPoints: ["src/index.js"],
  outfile: process.argv[2] ?? join(here, "..", "static", "widgets.js"),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  mangleProps: new RegExp(`^(${NAMES.join("|")})$`),
  charset: "utf8",
  legalComments: "none",
  plugins: [stylesheets],
});
