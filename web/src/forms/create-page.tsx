import { canRead, keyPath, may } from '../api/model.ts';
import { useApp, useEntity } from '../app/context.ts';
import { EntityNotFound, NotFound } from '../app/not-found.tsx';
import type { PageProps } from '../app/page.ts';
import { navigate, toAddress } from '../app/router.ts';
import { Breadcrumb } from '../ui/breadcrumb.tsx';
import { Notice } from '../ui/notice.tsx';
import { formFields, sayFromCaller } from './fields.ts';
import { RowForm } from './row-form.tsx';

/** A form for a new row. The query of the address has values that are known already. */
export function CreatePage({ open, address }: PageProps) {
  const { api, user } = useApp();
  const entity = useEntity(open.entity ?? '');
  if (!entity) return <EntityNotFound name={open.entity} />;
  const { name } = entity;
  if (entity.series || !may(entity, 'create', user))
    return (
      <NotFound what="Form" back={{ title: name, address: toAddress(['entities', name]) }}>
        {entity.series ? `${name} is a data series, whose counts have no form.` : `Your roles may not write ${name}.`}
      </NotFound>
    );
  return (
    <>
      <Breadcrumb ancestors={[{ title: name, address: toAddress(['entities', name]) }]} />
      <h1>New row of {name}</h1>
      {sayFromCaller(entity) && <p class="muted">{sayFromCaller(entity)}</p>}
      <RowForm
        entity={entity}
        fields={formFields(entity, user, 'create')}
        initial={Object.fromEntries(address.query)}
        submitLabel="Create"
        onCancel={() => navigate(toAddress(['entities', name]))}
        onSubmit={async ({ values }) => {
          const created = await api.entity(name).create(values);
          navigate(toAddress(['entities', name, 'rows', ...keyPath(entity, created.values)], { created: 'true' }));
        }}
      />
      {!canRead(entity, user) && <Notice kind="info">Your roles write rows of {name} without reading them.</Notice>}
    </>
  );
}
