import { readFile } from "node:fs/promises";
import { defineConfig } from "vitest/config";

/** As esbuild's loader: a stylesheet is its text. */
const stylesheetAsText = {
  name: "stylesheet-as-text",
  enforce: "pre",
  async load(id) {
    if (id.endsWith(".css")) return `export default ${JSON.stringify(await readFile(id, "utf8"))}`;
  },
};

export default defineConfig({
  plugins: [stylesheetAsText],
  test: { environment: "happy-dom", include: ["test/**/*.test.js"], css: false },
});
