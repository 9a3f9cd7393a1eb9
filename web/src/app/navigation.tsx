import { canRead, canWrite, type Entity } from '../api/model.ts';
import { pages } from '../pages.ts';
import { useApp } from './context.ts';
import { toAddress } from './router.ts';

/** Entities that the roles of the user may read or write, with their children and archives beside them, then other pages. */
export function Navigation(props: {
  readonly isOpen: boolean;
  readonly current: string;
  /** Called when a link is chosen, also that of the current page. */
  readonly onChoose: () => void;
}) {
  const { isOpen, current, onChoose } = props;
  const app = useApp();
  const visible = [...app.model.entities.values()].filter(
    (entity) => canRead(entity, app.user) || canWrite(entity, app.user),
  );
  const groups = Map.groupBy(
    pages.filter(({ group, isVisible }) => group !== undefined && (isVisible?.(app) ?? true)),
    ({ group = '' }) => group,
  );
  const isHere = (address: string) => (`#/${current}/`.startsWith(`${address}/`) ? 'page' : undefined);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click
    <nav
      id="navigation"
      class={isOpen ? 'open' : ''}
      aria-label="Pages"
      onClick={({ target }) => target instanceof Element && target.closest('a') && onChoose()}
    >
      <h2>Entities</h2>
      <ul>
        {toTree(visible).map(({ entity, isNested }) => {
          const address = toAddress(['entities', entity.name]);
          return (
            <li key={entity.name} class={isNested ? 'nested' : ''}>
              <a href={address} aria-current={isHere(address)}>
                {entity.name}
                {entity.series && <small>series</small>}
                {entity.archiveOf !== undefined && <small>archive</small>}
              </a>
            </li>
          );
        })}
      </ul>
      {[...groups].map(([group, listed]) => (
        <section key={group}>
          <h2>{group}</h2>
          <ul>
            {listed.map(({ pattern, title }) => {
              const address = toAddress(pattern.split('/'));
              return (
                <li key={pattern}>
                  <a href={address} aria-current={isHere(address)}>
                    {title}
                  </a>
                </li>
              );
            })}
          </ul>
        </section>
      ))}
      {app.tryAs && (
        <>
          <h2>Development</h2>
          <ul>
            <li>
              <button type="button" class="plain" onClick={app.tryAs}>
                Try as another user
              </button>
            </li>
          </ul>
        </>
      )}
      <h2>API</h2>
      <ul>
        <li>
          <a href="/docs">Routes to try out</a>
        </li>
      </ul>
    </nav>
  );
}

/** Children and archives follow the entity to which they belong. */
function toTree(entities: readonly Entity[]): { entity: Entity; isNested: boolean }[] {
  const names = entities.map(({ name }) => name);
  const ownerOf = ({ parent, archiveOf }: Entity) => {
    const owner = parent ?? archiveOf;
    return owner !== undefined && names.includes(owner) ? owner : undefined;
  };
  return entities
    .filter((entity) => ownerOf(entity) === undefined)
    .flatMap((entity) => [
      { entity, isNested: false },
      ...entities.filter((each) => ownerOf(each) === entity.name).map((each) => ({ entity: each, isNested: true })),
    ]);
}
