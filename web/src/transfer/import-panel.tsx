import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Entity } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { DropZone } from '../ui/drop-zone.tsx';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { type ImportMode, type ImportProgress, importRows, type RejectedRow } from './import-rows.ts';
import { readRows } from './read-rows.ts';
import { saveFile, toNdjson } from './save-file.ts';

const NDJSON = 'application/x-ndjson';
const SHOWN_REASONS = 20;

interface State {
  readonly name: string;
  readonly progress?: ImportProgress;
  readonly error?: unknown;
  readonly isDone?: boolean;
}

/** Imports rows from a file. */
export function ImportPanel({ entity }: { readonly entity: Entity }) {
  const { api } = useApp();
  const id = useId();
  const [mode, setMode] = useState<ImportMode>('create');
  const [state, setState] = useState<State>();
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(new Error('The page was left.')), []);
  const isRunning = state !== undefined && !state.isDone && state.error === undefined;
  const start = async (file: File) => {
    const { name } = file;
    let progress: ImportProgress | undefined;
    const running = new AbortController();
    controller.current = running;
    const { signal } = running;
    setState({ name });
    const onProgress = (next: ImportProgress) => {
      progress = next;
      setState({ name, progress: next });
    };
    try {
      const done = await importRows(readRows(entity, file), {
        ...{ client: api.entity(entity.name), entity, mode, signal, onProgress },
      });
      setState({ name, progress: done, isDone: true });
    } catch (error) {
      setState({ name, ...(progress ? { progress } : {}), error });
    }
  };
  return (
    <section aria-label="Import">
      <h2>Import</h2>
      <fieldset>
        <legend>Rows that exist</legend>
        {(['create', 'put'] as const).map((each) => (
          <label key={each}>
            <input type="radio" name={`${id}-mode`} checked={mode === each} onChange={() => setMode(each)} />
            {each === 'create' ? 'are rejected' : 'are replaced'}
          </label>
        ))}
      </fieldset>
      {!isRunning && (
        <DropZone
          label="CSV or NDJSON file"
          hint="A CSV file has a header with the names of fields."
          accept=".csv,.ndjson,.jsonl"
          onFile={start}
        />
      )}
      {state && (
        <Result
          entity={entity}
          state={state}
          {...(isRunning ? { onCancel: () => controller.current?.abort(new Error('The import was canceled.')) } : {})}
        />
      )}
    </section>
  );
}

function Result({
  entity,
  state: { name, progress, error, isDone },
  onCancel,
}: {
  readonly entity: Entity;
  readonly state: State;
  readonly onCancel?: () => void;
}) {
  const { read = 0, written = 0, unchanged = 0, rejected = [], share = 0 } = progress ?? {};
  const number = (count: number) => count.toLocaleString('en');
  const summary = `${number(read)} rows read, ${number(written)} written, ${number(unchanged)} unchanged, ${number(rejected.length)} rejected`;
  return (
    <>
      {onCancel && (
        <div class="actions">
          <progress aria-label={`Import of ${name}`} value={share} max={1} />
          <button type="button" class="secondary outline" onClick={onCancel}>
            Cancel
          </button>
        </div>
      )}
      <ErrorNotice error={error} />
      {isDone ? (
        <Notice kind={rejected.length > 0 ? 'info' : 'good'}>
          {name}: {summary}.
        </Notice>
      ) : (
        <p class="summary" role="status">
          {name}: {summary}
        </p>
      )}
      {rejected.length > 0 && !onCancel && <Rejected entity={entity} rejected={rejected} />}
    </>
  );
}

function Rejected({ entity, rejected }: { readonly entity: Entity; readonly rejected: readonly RejectedRow[] }) {
  const rows = rejected.flatMap(({ values }) => (values ? [values] : []));
  const reasons = rejected.map(({ line, reason }) => ({ line, reason }));
  return (
    <>
      <div class="actions">
        {rows.length > 0 && (
          <button
            type="button"
            class="secondary"
            onClick={() => saveFile(`${entity.name}-rejected.ndjson`, [toNdjson(rows)], NDJSON)}
          >
            Save the rejected rows
          </button>
        )}
        <button
          type="button"
          class="secondary outline"
          onClick={() => saveFile(`${entity.name}-reasons.ndjson`, [toNdjson(reasons)], NDJSON)}
        >
          Save the reasons
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="scroll" aria-label="Rejected rows" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Line</th>
              <th scope="col">Reason</th>
            </tr>
          </thead>
          <tbody>
            {reasons.slice(0, SHOWN_REASONS).map(({ line, reason }) => (
              <tr key={line}>
                <td>{line}</td>
                <td>{reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}
