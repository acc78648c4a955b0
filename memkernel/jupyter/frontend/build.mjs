// Builds src/index.js into ../static/widgets.js, one file with its style inside: node build.mjs [OUTFILE]
import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

await build({
  absWorkingDir: here,
  entryPoints: ["src/index.js"],
  outfile: process.argv[2] ?? join(here, "..", "static", "widgets.js"),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  loader: { ".css": "text" },
});
