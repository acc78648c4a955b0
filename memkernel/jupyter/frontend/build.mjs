// Builds src/index.js into ../static/widgets.js, one file with its style inside: node build.mjs [OUTFILE]
import { build, transform } from "esbuild";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** A stylesheet is its text, without what only people read. */
const stylesheets = {
  name: "stylesheets",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true, charset: "utf8" });
      return { contents: code.trim(), loader: "text" };
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
  charset: "utf8",
  legalComments: "none",
  plugins: [stylesheets],
});
