import { defineConfig } from 'vite';

// The API allows the origin of this port only.
export default defineConfig({ server: { port: 5173, strictPort: true } });
