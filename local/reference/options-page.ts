import { readFileSync } from 'node:fs';

/** Where a part of a declaration is typed. The doc comments of its options are their documentation. */
interface Part {
  readonly heading: string;
  readonly about: string;
  readonly file: string;
  /** The interfaces, or the schema, that have the options. */
  readonly of: readonly string[];
}

interface Option {
  readonly name: string;
  readonly isOptional: boolean;
  readonly meaning: string;
}

const DECLARATION = 'lib/define/declaration';
const PARTS: readonly Part[] = [
  {
    heading: 'defineModel',
    about: '`defineModel({ … })`: the app.',
    file: 'lib/define/define-model.ts',
    of: ['ModelDeclaration', 'PlainOptions'],
  },
  {
    heading: 'defineEntity',
    about: '`defineEntity(name, { … })`: what is stored. The name begins its routes.',
    file: `${DECLARATION}/declaration.ts`,
    of: ['Declaration', 'Options'],
  },
  {
    heading: 'intraPartitionIndex',
    about: 'A copy of each entity beside it, which changes in the same transaction.',
    file: `${DECLARATION}/indexes.ts`,
    of: ['IntraPartitionOptions'],
  },
  {
    heading: 'interPartitionIndex',
    about: 'A copy in another partition: the options of `intraPartitionIndex`, and these.',
    file: `${DECLARATION}/indexes.ts`,
    of: ['InterPartitionOptions'],
  },
  {
    heading: 'indexEntity',
    about:
      'One row that lists the entities with a value. In another partition with `table` and `partition`, `settle` and `appends` of `interPartitionIndex`.',
    file: `${DECLARATION}/indexes.ts`,
    of: ['ListOptions'],
  },
  {
    heading: 'total',
    about: 'A member of `totals`.',
    file: `${DECLARATION}/totals.ts`,
    of: ['TotalOptions'],
  },
  {
    heading: 'access',
    about: 'Who may read and write an entity.',
    file: `${DECLARATION}/access.ts`,
    of: ['AccessDeclaration'],
  },
  {
    heading: 'A rule',
    about: 'A member of a list in `access`, in place of the name of a role.',
    file: `${DECLARATION}/access.ts`,
    of: ['DeclaredAlternative'],
  },
  {
    heading: 'access.own by a claim',
    about: "The caller's own entity.",
    file: `${DECLARATION}/access.ts`,
    of: ['ClaimOwner'],
  },
  {
    heading: 'references',
    about: 'A member of `references`, by the field.',
    file: `${DECLARATION}/declaration.ts`,
    of: ['DeclaredReference'],
  },
  {
    heading: 'denormalized',
    about: 'A member of `denormalized`, by the field that refers to the source.',
    file: `${DECLARATION}/declaration.ts`,
    of: ['Copied'],
  },
  {
    heading: 'attachments',
    about: 'A member of `attachments`.',
    file: `${DECLARATION}/attachment.ts`,
    of: ['AttachmentDeclaration'],
  },
  { heading: 'period', about: 'A table for each period.', file: `${DECLARATION}/declaration.ts`, of: ['Period'] },
  {
    heading: 'limits',
    about: 'A member of `limits` of the model.',
    file: `${DECLARATION}/request-limit.ts`,
    of: ['RequestLimit'],
  },
  {
    heading: 'placement',
    about: 'A member of `placement` of the model.',
    file: 'lib/define/places/placement.ts',
    of: ['Placement'],
  },
  {
    heading: 'defineOperation',
    about: '`defineOperation(name, { … })`: what the app does beside reading and writing entities.',
    file: 'lib/define/define-operation.ts',
    of: ['OperationDeclaration'],
  },
  {
    heading: 'defineSeries',
    about:
      '`defineSeries(name, { … })`: counts under one key. Of an entity it has `schema`, `table`, `sharedTable`, `key`, `access` and `ofUser`, and these.',
    file: 'lib/define/define-series.ts',
    of: ['SeriesOptions'],
  },
  {
    heading: 'slots',
    about: 'The counts of a series.',
    file: 'lib/define/define-series.ts',
    of: ['SlotsOptions'],
  },
];

/** Returns the text of docs/reference/options.md. Throws if an option has no doc comment. */
export function formatOptions(): string {
  return `# Options of a declaration

Every option, from the doc comments of its type: an editor shows the same text. [Model](model.md) explains the larger ones. \`npm run reference\` writes this page.

${PARTS.map(formatPart).join('\n')}`;
}

function formatPart({ heading, about, file, of }: Part): string {
  const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  const rows = of
    .flatMap((name) => readOptions(source, name))
    .map(({ name, isOptional, meaning }) => `| \`${name}\` | ${isOptional ? '' : '**Required.** '}${meaning} |`);
  return `## ${heading}\n\n${about}\n\n| Option | Meaning |\n|---|---|\n${rows.join('\n')}\n`;
}

/** Reads the members of an interface, or of the schema `optionsOf({ … })`, with their doc comments. */
function readOptions(source: string, name: string): Option[] {
  const start = new RegExp(`^(?:export )?(?:interface|const) ${name}\\b`, 'm').exec(source);
  if (!start) throw new Error(`There is no ${name}.`);
  const rest = source.slice(source.indexOf('{\n', start.index) + 2);
  const options: Option[] = [];
  let comment = '';
  for (const line of rest.slice(0, rest.search(/^}/m)).split('\n')) {
    const [, text] = /^ {2}(?:\/\*\*| \*(?!\/))? ?(.*?)(?: ?\*\/)?$/.exec(line) ?? [];
    const [, member, mark] = /^ {2}(?:readonly )?(\w+)(\??):(?: |$)/.exec(line) ?? [];
    if (member !== undefined) {
      if (comment === '') throw new Error(`The option ${member} of ${name} has no doc comment.`);
      options.push({ name: member, isOptional: mark === '?' || line.includes('.optional()'), meaning: comment });
      comment = '';
    } else if (/^ {2}( \*|\/\*\*)/.test(line)) comment = `${comment} ${text}`.trim();
  }
  return options;
}
