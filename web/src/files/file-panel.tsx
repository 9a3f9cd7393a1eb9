import { useRef, useState } from 'preact/hooks';
import type { AttachmentDescription, Entity, Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { DropZone } from '../ui/drop-zone.tsx';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { formatBytes } from './format-bytes.ts';
import { Preview } from './preview.tsx';
import type { StoredFile } from './stored-file.ts';
import { uploadError, useUpload } from './use-upload.ts';

/** A longer file is read in ranges, of which only one has to be read again after a failure. The browser keeps a file that is read whole. */
const RANGE_BYTES = 8_000_000;

interface FilePanelProps {
  readonly entity: Entity;
  readonly rowKey: Values;
  readonly field: string;
  readonly attachment: AttachmentDescription;
  readonly stored: StoredFile | undefined;
  readonly isWritable: boolean;
  readonly reload: () => void;
}

export function FilePanel({ entity, rowKey, field, attachment, stored, isWritable, reload }: FilePanelProps) {
  const { api } = useApp();
  const [isDeleting, setDeleting] = useState(false);
  const upload = useUpload({ entity: entity.name, rowKey, field, onDone: reload });
  const file = () => {
    const found = api.entity(entity.name).files[field];
    if (!found) throw new Error(`No file "${field}".`);
    return found;
  };
  const remove = async () => {
    await file().delete(rowKey);
    reload();
  };
  return (
    <article class="file">
      <h3>{field}</h3>
      {stored ? (
        <Preview
          // Another file has other bytes.
          key={JSON.stringify(stored)}
          name={[...Object.values(rowKey), field].join('-')}
          stored={stored}
          load={(signal) =>
            file().get(rowKey, { signal, ...(stored.bytes > RANGE_BYTES ? { rangeBytes: RANGE_BYTES } : {}) })
          }
        />
      ) : (
        <p class="muted">No file.</p>
      )}
      {upload.state && <UploadState upload={upload} />}
      {isWritable && !upload.isSending && (
        <>
          <DropZone
            label={stored ? `Replace ${field}` : `Upload ${field}`}
            hint={`${attachment.types.join(', ')}; at most ${formatBytes(attachment.maxBytes)}. Goes directly to storage.`}
            accept={attachment.types.join(',')}
            onFile={(chosen) => upload.start(chosen, uploadError(chosen, attachment))}
          />
          {stored && (
            <button type="button" class="secondary outline" onClick={() => setDeleting(true)}>
              Delete {field}
            </button>
          )}
        </>
      )}
      {isDeleting && (
        <ConfirmDialog
          title={`Delete ${field}`}
          confirm="Delete the file"
          isDangerous
          act={remove}
          onClose={() => setDeleting(false)}
        >
          <p>The file is deleted. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </article>
  );
}

function UploadState({ upload }: { readonly upload: ReturnType<typeof useUpload> }) {
  const id = useRef(`upload-${Math.random().toString(36).slice(2)}`).current;
  const { state } = upload;
  if (!state) return null;
  if (state.error !== undefined) return <ErrorNotice error={state.error} title="The file was not uploaded" />;
  if (state.way)
    return <Notice kind="good">Uploaded {state.way === 'storage' ? 'directly to storage' : 'through the API'}.</Notice>;
  return (
    <div class="actions">
      <label for={id}>
        Sending, {formatBytes(state.sent)} of {formatBytes(state.total)}
      </label>
      <progress id={id} value={state.sent} max={state.total} />
      <button type="button" class="secondary outline" onClick={upload.cancel}>
        Cancel
      </button>
    </div>
  );
}
