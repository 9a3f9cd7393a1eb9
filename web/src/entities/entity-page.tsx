import { canRead, type Entity, may } from '../api/model.ts';
import { useApp, useEntity } from '../app/context.ts';
import { EntityNotFound } from '../app/not-found.tsx';
import type { PageProps } from '../app/page.ts';
import { toAddress } from '../app/router.ts';
import { entityTabs } from '../tabs.ts';
import { Notice } from '../ui/notice.tsx';
import { Tabs } from '../ui/tabs.tsx';

/** For roles that write rows without reading them. */
function WriteOnly({ entity }: { readonly entity: Entity }) {
  const { user } = useApp();
  if (entity.series || !may(entity, 'create', user)) return <p>Your roles may not read {entity.name}.</p>;
  return (
    <p>
      Your roles write rows without reading them. <a href={toAddress(['entities', entity.name, 'new'])}>New row</a>
    </p>
  );
}

/** An entity, with a tab for each way to use it. */
export function EntityPage({ open, address }: PageProps) {
  const entity = useEntity(open.entity ?? '');
  const { user } = useApp();
  if (!entity) return <EntityNotFound name={open.entity} />;
  const tabs = entityTabs.filter(({ isVisible }) => isVisible(entity, user));
  const tab = open.tab === undefined ? tabs[0] : tabs.find(({ id }) => id === open.tab);
  const Content = tab?.component;
  return (
    <>
      <h1>{entity.name}</h1>
      <Tabs
        label={`Views of ${entity.name}`}
        current={tab?.id}
        tabs={tabs.map(({ id, title }) => ({ id, title, address: toAddress(['entities', entity.name, id]) }))}
      />
      {open.tab !== undefined && !tab && (
        <Notice kind="info">
          {entity.name} has no view “{open.tab}”, or your roles do not see it.{' '}
          <a href={toAddress(['entities', entity.name])}>Back to {entity.name}</a>
        </Notice>
      )}
      {!canRead(entity, user) && <WriteOnly entity={entity} />}
      {Content && <Content key={entity.name} entity={entity} address={address} />}
    </>
  );
}
