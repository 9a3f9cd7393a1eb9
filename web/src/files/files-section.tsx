import { may } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import type { RowSectionProps } from '../app/page.ts';
import { FilePanel } from './file-panel.tsx';
import type { StoredFile } from './stored-file.ts';

/** The files of a row: shown, replaced and deleted. */
export function FilesSection({ entity, rowKey, values, reload }: RowSectionProps) {
  const { user } = useApp();
  return (
    <>
      <h2>Files</h2>
      {Object.entries(entity.attachments).map(([field, attachment]) => (
        <FilePanel
          key={field}
          entity={entity}
          rowKey={rowKey}
          field={field}
          attachment={attachment}
          stored={values[field] as StoredFile | undefined}
          isWritable={may(entity, 'update', user)}
          reload={reload}
        />
      ))}
    </>
  );
}
