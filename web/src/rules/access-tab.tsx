import type { Entity } from '../api/model.ts';
import { Table } from '../ui/table.tsx';
import './rules.css';

type Rules = Entity['access']['rules'];
type Alternative = Rules['create'][number];

const WRITES = ['create', 'update', 'delete'] as const;

interface Line {
  readonly what: string;
  readonly alternative: Alternative;
  readonly lists?: string;
}

/** Who may do what, as the model declares it. */
export function AccessTab({ entity }: { readonly entity: Entity }) {
  const { rules } = entity.access;
  const fields = Object.entries(rules.fields).flatMap(([what, all]) => toLines(what, all));
  return (
    <div class="rules">
      <p>A role reaches the rows for which all terms of a line hold.</p>
      <Table
        label={`Who may do what with ${entity.name}`}
        items={[...readLines(entity), ...writeLines(rules)]}
        columns={[
          { title: 'May', cell: ({ what }) => what },
          { title: 'Role', cell: ({ alternative: { role } }) => <code>{role}</code> },
          {
            title: 'Which rows',
            cell: ({ alternative: { terms, transition }, lists }) => (
              <>
                {transition && (
                  <small>
                    {transition.side} change {transition.number}
                  </small>
                )}
                <Terms terms={terms} />
                {lists !== undefined && <small class="lists">Lists: {lists}</small>}
              </>
            ),
          },
        ]}
      />
      {fields.length > 0 && (
        <>
          <h2>Restricted fields</h2>
          <Table
            label={`Restricted fields of ${entity.name}`}
            items={fields}
            columns={[
              { title: 'Field', cell: ({ what }) => what },
              { title: 'Read by', cell: ({ alternative: { role } }) => <code>{role}</code> },
              { title: 'In which rows', cell: ({ alternative: { terms } }) => <Terms terms={terms} /> },
            ]}
          />
        </>
      )}
    </div>
  );
}

function Terms({ terms }: { readonly terms: readonly string[] }) {
  if (terms.length === 0) return <span class="muted">all</span>;
  return (
    <ul class="terms">
      {terms.map((term) => (
        <li key={term}>{term}</li>
      ))}
    </ul>
  );
}

/** The first line of an action names it. */
function toLines(what: string, alternatives: readonly Alternative[]): Line[] {
  return alternatives.map((alternative, position) => ({ what: position === 0 ? what : '', alternative }));
}

function readLines({ access: { rules }, series }: Entity): Line[] {
  return toLines('read', rules.read).map((line, position) => {
    const { key, indexes } = rules.read[position]?.lists ?? { key: false, indexes: [] };
    const names = [...(key ? ['by key'] : []), ...indexes];
    return series ? line : { ...line, lists: names.length > 0 ? names.join(', ') : 'none' };
  });
}

/** Writes with the same rule are one line. */
function writeLines(rules: Rules): Line[] {
  const groups = Map.groupBy(WRITES, (write) => JSON.stringify(rules[write]));
  return [...groups.values()].flatMap((writes) => toLines(writes.join(', '), rules[writes[0] ?? 'create']));
}
