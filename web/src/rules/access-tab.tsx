import { useState } from 'preact/hooks';
import { canRead, type Entity, may, readableFields, readsEveryRow } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { findOpening, findPreview, waysToRead } from '../entities/ways.ts';
import { joinNames } from '../ui/format.ts';
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
  const { model } = useApp();
  const [role, setRole] = useState('');
  const rules = role === '' ? entity.access.rules : ofRole(entity.access.rules, role);
  const fields = Object.entries(rules.fields).flatMap(([what, all]) => toLines(what, all));
  return (
    <div class="rules">
      <label class="role">
        As the role
        <select value={role} onChange={({ currentTarget }) => setRole(currentTarget.value)}>
          <option value="">every role</option>
          {model.roles.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      {role !== '' && <AsRole entity={entity} role={role} />}
      <p>A role reaches the rows for which all terms of a line hold.</p>
      <Table
        label={`Who may do what with ${entity.name}`}
        items={[...readLines(rules, entity.series !== undefined), ...writeLines(rules)]}
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

/** What the console would show and offer to somebody with this role alone. */
function AsRole({ entity, role }: { readonly entity: Entity; readonly role: string }) {
  const { model } = useApp();
  const caller = { roles: [role] };
  const ways = canRead(entity, caller) ? waysToRead(entity, model, caller) : [];
  const opening = findOpening(entity, ways) ?? findPreview(entity, ways);
  const writes = WRITES.filter((write) => may(entity, write, caller));
  const known = canRead(entity, caller) ? readableFields(entity, caller) : [];
  const hidden = Object.keys(entity.fields).filter((field) => !known.includes(field));
  return (
    <ul aria-label={`As ${role}`}>
      <li>
        {ways.length === 0
          ? `Reads no row of ${entity.name}.`
          : `Reads ${readsEveryRow(entity, caller) ? 'every row' : 'some rows'}: by ${joinNames(
              ways.map(({ title, fields }) => (fields.length > 0 ? `${title} (${fields.join(', ')})` : title)),
              'or',
            )}.`}
      </li>
      {ways.length > 0 && (
        <li>
          {opening
            ? `Opens with the rows of: ${opening.title}.`
            : 'Opens without rows, because each list needs a value.'}
        </li>
      )}
      <li>{writes.length > 0 ? `May ${joinNames(writes, 'and')} rows, within the terms below.` : 'Writes nothing.'}</li>
      {ways.length > 0 && hidden.length > 0 && <li>Does not see {joinNames(hidden, 'and')}.</li>}
    </ul>
  );
}

function ofRole(rules: Rules, role: string): Rules {
  const only = <Each extends Alternative>(all: readonly Each[]) => all.filter((one) => one.role === role);
  const fields = Object.entries(rules.fields).map(([field, all]) => [field, only(all)] as const);
  return {
    read: only(rules.read),
    create: only(rules.create),
    update: only(rules.update),
    delete: only(rules.delete),
    fields: Object.fromEntries(fields),
  };
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

function readLines(rules: Rules, isSeries: boolean): Line[] {
  return toLines('read', rules.read).map((line, position) => {
    const { key, indexes } = rules.read[position]?.lists ?? { key: false, indexes: [] };
    const names = [...(key ? ['by key'] : []), ...indexes];
    return isSeries ? line : { ...line, lists: names.length > 0 ? names.join(', ') : 'none' };
  });
}

/** Writes with the same rule are one line. */
function writeLines(rules: Rules): Line[] {
  const groups = Map.groupBy(WRITES, (write) => JSON.stringify(rules[write]));
  return [...groups.values()].flatMap((writes) => toLines(writes.join(', '), rules[writes[0] ?? 'create']));
}
