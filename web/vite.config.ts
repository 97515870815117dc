import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// Paths are relative, so that the pages work under any prefix of a proxy.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "../deepgrid/gateway/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800, // kB before packing; `./run web size` has the limits of packed files
    rollupOptions: {
      output: {
        // Pages that are read together share a file; the editor is loaded when it is opened.
        manualChunks(id: string) {
          if (/node_modules\/(@codemirror|@lezer|yaml|style-mod|w3c-keyname|crelt)\//.test(id)) return "editor";
          if (/node_modules\/(viem|ox|abitype|@noble|@scure|@adraffy)\/|src\/generated\/(MetaScheduler|ProviderManager|Credit)/.test(id)) return "chain";
          return undefined;
        },
      },
    },
  },
  server: { fs: { allow: [".."] } }, // vectors are beside the Python tests
  test: { include: ["tests/**/*.test.ts"], setupFiles: ["tests/setup.mjs"] },
});
