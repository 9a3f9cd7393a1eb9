import { canRead, canWrite, type Entity } from '../api/model.ts';
import { waysToRead } from '../entities/ways.ts';
import { useApp } from './context.ts';
import { toAddress } from './router.ts';

/** The entities of the model with what is declared of each. */
export function HomePage() {
  const { model, user } = useApp();
  const entities = [...model.entities.values()].filter((entity) => canRead(entity, user) || canWrite(entity, user));
  return (
    <>
      <h1>Entities</h1>
      {entities.length > 0 && (
        <p class="muted">
          What the app stores, with the fields of each key. Open an entity to find, change, import or export its rows.
        </p>
      )}
      {entities.length === 0 && (
        <p>None of your roles ({user.roles.join(', ') || 'you have none'}) may read or write an entity of this app.</p>
      )}
      <ul class="cards">
        {entities.map((entity) => (
          <li key={entity.name}>
            <a href={toAddress(['entities', entity.name])}>
              <strong>{entity.name}</strong>
              <code>{entity.key.fields.join(' / ')}</code>
              <small>{describe(entity).join(' · ')}</small>
            </a>
            <Finders entity={entity} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Links to find one row by an index. */
function Finders({ entity }: { readonly entity: Entity }) {
  const { model, user } = useApp();
  const ways = canRead(entity, user) ? waysToRead(entity, model, user) : [];
  const finders = ways.filter(({ kind, isOne }) => kind === 'index' && isOne);
  if (finders.length === 0) return null;
  return (
    <small class="finders">
      Find one by{' '}
      {finders.map(({ id }, position) => (
        <span key={id}>
          {position > 0 && ', '}
          <a href={toAddress(['entities', entity.name, 'rows'], { by: id })}>{id}</a>
        </span>
      ))}
    </small>
  );
}

function describe({ indexes, totals, children, series, attachments, archive, archiveOf, period }: Entity): string[] {
  const count = (names: object, one: string, many: string) => {
    const { length } = Object.keys(names);
    return length === 0 ? [] : [`${length} ${length === 1 ? one : many}`];
  };
  return [
    ...(series ? ['data series'] : []),
    ...(archiveOf === undefined ? [] : [`archive of ${archiveOf}`]),
    ...count(indexes, 'index', 'indexes'),
    ...count(totals, 'total', 'totals'),
    ...(children.length > 0 ? [`children: ${children.join(', ')}`] : []),
    ...count(attachments, 'file', 'files'),
    ...(archive === undefined ? [] : ['can be archived']),
    ...(period ? [`a table per ${period.per}`] : []),
  ];
}
