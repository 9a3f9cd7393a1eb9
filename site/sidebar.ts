import { readFileSync } from 'node:fs';

interface Group {
  readonly label: string;
  readonly collapsed: boolean;
  readonly items: { readonly label: string; readonly slug: string }[];
}

/** Reads the navigation from docs/README.md: a group for each heading, and a page for each item that begins with a link. */
export function readSidebar(): Group[] {
  const [, ...sections] = readFileSync(new URL('../docs/README.md', import.meta.url), 'utf8').split('\n## ');
  return sections.map((section) => {
    const [label = ''] = section.split('\n', 1);
    const links = [...section.matchAll(/^- \[([^\]]+)\]\(([\w/-]+)\.md\)/gm)];
    return {
      label,
      collapsed: label === 'Internals',
      items: links.map(([, label = '', slug = '']) => ({ label, slug })),
    };
  });
}
