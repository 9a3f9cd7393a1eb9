import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// The API allows the origin of this port only.
export default defineConfig({ plugins: [react()], server: { port: 5173, strictPort: true } });
