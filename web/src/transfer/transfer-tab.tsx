import { canRead, type Entity, may } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import type { Address } from '../app/router.ts';
import { ExportPanel } from './export-panel.tsx';
import { ImportPanel } from './import-panel.tsx';

/** Import and export of the rows of an entity. */
export function TransferTab({ entity }: { readonly entity: Entity; readonly address: Address }) {
  const { user } = useApp();
  return (
    <>
      {may(entity, 'create', user) && <ImportPanel entity={entity} />}
      {canRead(entity, user) && <ExportPanel entity={entity} />}
    </>
  );
}
