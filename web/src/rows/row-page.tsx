import { useEffect, useState } from 'preact/hooks';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import { formatCosts } from '../api/cost.ts';
import type { Stored } from '../api/entity-client.ts';
import {
  canRead,
  canReadWhole,
  canTake,
  type Entity,
  hasRange,
  isOperator,
  keyPath,
  labelOf,
  may,
  readsPast,
  type Values,
} from '../api/model.ts';
import { useApp, useEntity } from '../app/context.ts';
import { EntityNotFound, NotFound } from '../app/not-found.tsx';
import type { PageProps } from '../app/page.ts';
import { toAddress } from '../app/router.ts';
import { rowSections } from '../tabs.ts';
import { Breadcrumb } from '../ui/breadcrumb.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { joinNames } from '../ui/format.ts';
import { lazy } from '../ui/lazy.tsx';
import { ErrorNotice, Loading, Notice } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { Children } from './children.tsx';
import { EditPanel, type Saved } from './edit-panel.tsx';
import { FieldList } from './field-list.tsx';
import { History } from './history.tsx';
import type { Moved } from './move-dialog.tsx';
import { readRow } from './read-row.ts';
import { RowActions } from './row-actions.tsx';
import { parseRowKey, partitionAddress } from './row-address.ts';
import { StoragePlaces } from './storage-places.tsx';
import { findUndoObstacle } from './undo-delete.ts';
import { UndoNotice } from './undo-notice.tsx';
import { useReferredLabel } from './use-referred-label.ts';
import { Versions } from './versions.tsx';

const Why = lazy('what a caller may do', async () => (await import('../rules/why.tsx')).Why);

/** A row: its fields, files, children, history, where it is stored, and what can be done with it. */
export function RowPage({ open, address }: PageProps) {
  const entity = useEntity(open.entity ?? '');
  const path = address.segments.slice(3);
  const rowKey = entity && parseRowKey(entity, path);
  const { user } = useApp();
  const id = JSON.stringify([open.entity, path]);
  const [named, setNamed] = useState<{ readonly id: string; readonly label: string | undefined }>();
  const label = named?.id === id ? named.label : undefined;
  if (!entity) return <EntityNotFound name={open.entity} />;
  if (!rowKey)
    return (
      <NotFound what="Row" back={{ title: entity.name, address: toAddress(['entities', entity.name]) }}>
        The address needs a value of each key field: {entity.key.fields.join(' / ')}.
      </NotFound>
    );
  if (entity.series)
    return (
      <NotFound what="Row" back={{ title: entity.name, address: toAddress(['entities', entity.name]) }}>
        {entity.name} is a data series, whose counts are shown as a chart.
      </NotFound>
    );
  return (
    <>
      <Breadcrumb
        ancestors={[
          { title: entity.name, address: toAddress(['entities', entity.name]) },
          ...(hasRange(entity)
            ? [{ title: <PartitionName entity={entity} rowKey={rowKey} />, address: partitionAddress(entity, rowKey) }]
            : []),
        ]}
      />
      <h1>
        {label === undefined ? (
          path.join(' / ')
        ) : (
          <>
            {label} <small>{path.join(' / ')}</small>
          </>
        )}
      </h1>
      {canRead(entity, user) ? (
        <Row
          key={id}
          onLabel={(found) => setNamed({ id, label: found })}
          entity={entity}
          rowKey={rowKey}
          isNew={address.query.has('created')}
        />
      ) : (
        <Notice kind="info">Your roles write rows of {entity.name} without reading them.</Notice>
      )}
    </>
  );
}

/** The partition of a row: the label of the row that it belongs to, if there is one, or its key. */
function PartitionName({ entity, rowKey }: { readonly entity: Entity; readonly rowKey: Values }) {
  const { fields } = entity.key.partition;
  const label = useReferredLabel(entity, fields.length === 1 ? fields[0] : undefined, rowKey);
  return <>{label ?? fields.map((field) => String(rowKey[field])).join(' / ')}</>;
}

interface RowProps {
  readonly entity: Entity;
  readonly rowKey: Values;
  readonly isNew: boolean;
  /** Called with the label of the row that was read. */
  readonly onLabel: (label: string | undefined) => void;
}

function Row({ entity, rowKey, isNew, onLabel }: RowProps) {
  const { api, user, model } = useApp();
  const [isEditing, setEditing] = useState(false);
  const [saved, setSaved] = useState<Saved>();
  const [deleted, setDeleted] = useState<Values>();
  const [moved, setMoved] = useState<Moved>();
  const { result, error, isLoading, reload } = useLoaded(
    (outer) => api.measure((signal) => readRow(api.entity(entity.name), { entity, user, rowKey, signal }), outer),
    JSON.stringify([entity.name, rowKey]),
  );
  const label = labelOf(entity, result?.result?.values);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the function is another one at each render
  useEffect(() => onLabel(label), [label]);
  if (error !== undefined) {
    const isLost = error instanceof RowkeyClientError && error.code === 'needs-repair';
    return (
      <>
        <ErrorNotice error={error} />
        {isLost && <p>A PUT of all fields through the API replaces the row, and a DELETE deletes it.</p>}
      </>
    );
  }
  if (!result) return <Loading what="the row" />;
  const stored = result.result;
  const close = () => {
    setEditing(false);
    setSaved(undefined);
    setDeleted(undefined);
    reload();
  };
  if (moved) return <MovedAway moved={moved} />;
  if (deleted) return <Deleted entity={entity} values={deleted} onRestored={close} />;
  if (!stored) return <Missing entity={entity} rowKey={rowKey} />;
  const unreadable = Object.keys(stored.values).filter((field) => stored.values[field] === null);
  const sectionProps = { entity, rowKey, values: stored.values, etag: stored.etag, reload };
  return (
    <>
      {isNew && !saved && <Notice kind="good">Created.</Notice>}
      {saved && <UndoNotice entity={entity} rowKey={rowKey} saved={saved} onDone={close} />}
      {unreadable.length > 0 && (
        <Notice kind="bad">
          {joinNames(unreadable, 'and')} cannot be read: the stored data was lost, or changed outside the API.{' '}
          {may(entity, 'update', user)
            ? `Edit the row and enter a new value of ${joinNames(unreadable, 'and')}. Other fields can be read and changed.`
            : 'Someone who may write the row can enter a new value.'}
        </Notice>
      )}
      {isEditing ? (
        <EditPanel
          entity={entity}
          rowKey={rowKey}
          stored={stored}
          onCancel={close}
          onSaved={(done) => {
            setSaved(done);
            setEditing(false);
            reload();
          }}
        />
      ) : (
        (may(entity, 'update', user) || canTake(entity, 'delete', model, user)) && (
          <RowActions
            entity={entity}
            rowKey={rowKey}
            stored={stored}
            {...(may(entity, 'update', user) ? { onEdit: () => setEditing(true) } : {})}
            onDeleted={() => setDeleted(stored.values)}
            onMoved={setMoved}
            reload={reload}
          />
        )
      )}
      <div class={isEditing ? '' : 'row-columns'}>
        {!isEditing && (
          <div>
            <FieldList entity={entity} values={stored.values} />
            <p class="summary" aria-busy={isLoading}>
              <small>
                {formatCosts(result.costs)} · ETag <code>{stored.etag}</code>
              </small>
            </p>
            <CopyButton text={JSON.stringify(stored.values, null, 2)}>Copy as JSON</CopyButton>
          </div>
        )}
        <div>
          {rowSections
            .filter(({ isVisible }) => isVisible(entity, user))
            .map(({ id, title, component: Section }) => (
              <section key={id} aria-label={title}>
                <Section {...sectionProps} />
              </section>
            ))}
          <Children entity={entity} rowKey={rowKey} />
          <StoragePlaces entity={entity} rowKey={rowKey} values={stored.values} />
          {readsPast(model, user) && <Versions entity={entity} rowKey={rowKey} />}
          {isOperator(model, user) && canReadWhole(entity, user) && (
            <>
              <History entity={entity} rowKey={rowKey} />
              <Why entity={entity} rowKey={rowKey} />
            </>
          )}
        </div>
      </div>
    </>
  );
}

function MovedAway({ moved: { text, entity, key } }: { readonly moved: Moved }) {
  const target = useEntity(entity);
  return (
    <>
      <Notice kind="good">{text}</Notice>
      {target && <a href={toAddress(['entities', entity, 'rows', ...keyPath(target, key)])}>Open the row</a>}
    </>
  );
}

function Missing({ entity, rowKey }: { readonly entity: Entity; readonly rowKey: Values }) {
  const { model, user } = useApp();
  const query = Object.fromEntries(Object.entries(rowKey).map(([field, value]) => [field, String(value)]));
  return (
    <>
      <Notice kind="info">There is no row with this key.</Notice>
      {may(entity, 'create', user) && (
        <a class="link-button" href={toAddress(['entities', entity.name, 'new'], query)}>
          Create it
        </a>
      )}
      {readsPast(model, user) && <Versions entity={entity} rowKey={rowKey} />}
    </>
  );
}

interface DeletedProps {
  readonly entity: Entity;
  readonly values: Values;
  readonly onRestored: () => void;
}

/** A deleted row can be created again if the page has all that was deleted. */
function Deleted({ entity, values, onRestored }: DeletedProps) {
  const { api, user } = useApp();
  const [error, setError] = useState<unknown>();
  const obstacle = findUndoObstacle(entity, user, values);
  const restore = async () => {
    const own = Object.entries(values).filter(([field]) => {
      const described = entity.fields[field];
      return described && !described.derived && !described.kept;
    });
    try {
      const restored: Stored = await api.entity(entity.name).create(Object.fromEntries(own));
      if (restored) onRestored();
    } catch (failed) {
      setError(failed);
    }
  };
  return (
    <>
      <Notice kind="good">
        Deleted.{' '}
        {obstacle === undefined ? (
          <button type="button" class="secondary outline" onClick={restore}>
            Undo
          </button>
        ) : (
          `The delete cannot be undone: ${obstacle}.`
        )}
      </Notice>
      <ErrorNotice error={error} />
      <a href={toAddress(['entities', entity.name])}>Back to {entity.name}</a>
    </>
  );
}
