import { satteri } from '@astrojs/markdown-satteri';
import starlight from '@astrojs/starlight';
import { defineConfig, passthroughImageService } from 'astro/config';
import starlightLinksValidator from 'starlight-links-validator';
import { readSidebar } from './sidebar.ts';

/** Where GitHub Pages serves the site: its origin, and a path such as /rowkey. On this machine at the root. */
const { SITE_ORIGIN, SITE_BASE } = process.env;

export default defineConfig({
  ...(SITE_ORIGIN && { site: SITE_ORIGIN }),
  ...(SITE_BASE && { base: SITE_BASE }),
  // The pictures are small enough as they are, and sharp is a binary for each platform.
  image: { service: passthroughImageService() },
  // Options such as --url, and messages with quotation marks, stay as they are typed.
  markdown: { processor: satteri({ features: { smartPunctuation: false } }) },
  integrations: [
    starlight({
      title: 'Rowkey',
      description: 'A serverless data back end on Azure Table, Queue and Blob storage, driven by a declaration.',
      social: [{ icon: 'github', label: 'GitHub', href: 'https://github.com/contoso/rowkey' }],
      sidebar: readSidebar(),
      customCss: ['./src/styles/site.css'],
      components: { Head: './src/Head.astro' },
      lastUpdated: false,
      plugins: [starlightLinksValidator({ errorOnLocalLinks: false })],
    }),
  ],
});
