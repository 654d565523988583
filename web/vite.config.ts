import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The build goes into the Python package. No script is inlined: the page's policy forbids it.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/rota/api/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      output: {
        manualChunks: (id: string) =>
          id.includes("/echarts/") || id.includes("/zrender/") ? "charts" : undefined,
      },
    },
  },
  test: { testTimeout: 60_000 }, // a machine may be busy
  server: { proxy: { "/api": process.env.ROTA_URL ?? "http://localhost:7070" } },
});
