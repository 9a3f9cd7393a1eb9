import { useId, useState } from 'preact/hooks';
import { formatCosts } from '../api/cost.ts';
import type { Entity } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { useImports } from '../app/use-imports.ts';
import { formFields, sayRequired } from '../forms/fields.ts';
import { DropZone } from '../ui/drop-zone.tsx';
import { formatCount, plural } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { type ImportMode, importRows, type RejectedRow } from './import-rows.ts';
import { type ImportRun, isRunning } from './import-runs.ts';
import { readRows } from './read-rows.ts';
import { saveFile, toNdjson } from './save-file.ts';

const NDJSON = 'application/x-ndjson';
const SHOWN_REASONS = 20;

/** Imports rows from a file. */
export function ImportPanel({ entity }: { readonly entity: Entity }) {
  const { api, imports, user } = useApp();
  const id = useId();
  const [mode, setMode] = useState<ImportMode>('create');
  const run = useImports().find((each) => each.entity === entity.name);
  const isBusy = run !== undefined && isRunning(run);
  const start = (file: File) =>
    imports.start(entity.name, file.name, (signal, onProgress) =>
      api.measure(
        (measured) =>
          importRows(readRows(entity, file), {
            client: api.entity(entity.name),
            entity,
            mode,
            signal: measured,
            onProgress,
          }),
        signal,
      ),
    );
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
      {!isBusy && (
        <DropZone
          label="CSV or NDJSON file"
          hint="A CSV file has a header with the names of fields."
          accept=".csv,.ndjson,.jsonl"
          onFile={start}
        />
      )}
      {!run && (
        <p class="muted">No file has been imported in this tab. {sayRequired(formFields(entity, user, 'create'))}</p>
      )}
      {run && (
        <Result
          entity={entity}
          run={run}
          {...(isBusy ? { onCancel: () => imports.cancel(entity.name, 'The import was canceled.') } : {})}
        />
      )}
    </section>
  );
}

function Result({
  entity,
  run: { name, progress, error, isDone, costs = [] },
  onCancel,
}: {
  readonly entity: Entity;
  readonly run: ImportRun;
  readonly onCancel?: () => void;
}) {
  const { read = 0, written = 0, unchanged = 0, rejected = [], share = 0 } = progress ?? {};
  const summary = `${plural(read, 'row')} read, ${formatCount(written)} written, ${formatCount(unchanged)} unchanged, ${formatCount(rejected.length)} rejected`;
  return (
    <>
      {onCancel && (
        <div class="actions">
          <p class="muted">The import continues on other pages while this tab is open.</p>
          <progress aria-label={`Import of ${name}`} value={share} max={1} />
          <button type="button" class="secondary outline" onClick={onCancel}>
            Cancel
          </button>
        </div>
      )}
      <ErrorNotice error={error} title="The import failed" />
      {isDone ? (
        <Notice kind={rejected.length > 0 ? 'info' : 'good'}>
          <span>
            {name}: {summary}.
          </span>{' '}
          <small>{formatCosts(costs)}</small>
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
      <Table
        label="Rejected rows"
        items={reasons.slice(0, SHOWN_REASONS)}
        columns={[
          { title: 'Line', isNumber: true, cell: ({ line }) => line },
          { title: 'Reason', cell: ({ reason }) => reason },
        ]}
      />
      {reasons.length > SHOWN_REASONS && (
        <p class="muted">
          {plural(reasons.length - SHOWN_REASONS, 'more row was', 'more rows were')} rejected. The files have all of
          them.
        </p>
      )}
    </>
  );
}
