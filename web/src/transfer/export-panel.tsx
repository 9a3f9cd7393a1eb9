import Papa from 'papaparse';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Entity } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { parseListQuery } from '../entities/list-query.ts';
import { ReadForm } from '../entities/read-form.tsx';
import { createPageReader } from '../entities/read-page.ts';
import { waysToRead } from '../entities/ways.ts';
import { plural } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { countUnreadable, toCsv } from './csv.ts';
import { saveFile, toNdjson } from './save-file.ts';

const TOP = 1_000;

interface State {
  readonly rows: number;
  readonly unreadable: number;
  readonly isDone?: boolean;
  readonly error?: unknown;
}

/** Exports the rows of a partition or an index to a file. */
export function ExportPanel({ entity }: { readonly entity: Entity }) {
  const { api, model, user } = useApp();
  const [format, setFormat] = useState<'ndjson' | 'csv'>('ndjson');
  const [state, setState] = useState<State>();
  const [query, setQuery] = useState(() => parseListQuery(new URLSearchParams()));
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(new Error('The page was left.')), []);
  const ways = waysToRead(entity, model, user).filter(({ kind }) => kind !== 'key');
  const isRunning = state !== undefined && !state.isDone && state.error === undefined;
  const start = async (asked: typeof query) => {
    setQuery(asked);
    const way = ways.find(({ id }) => id === asked.by) ?? ways[0];
    const readPage = way && createPageReader(api, entity, way, asked);
    if (!readPage || !way) return;
    const running = new AbortController();
    controller.current = running;
    const { signal } = running;
    const columns = asked.columns.length > 0 ? [...new Set([...entity.key.fields, ...asked.columns])] : way.available;
    const parts: string[] = format === 'csv' ? [`${Papa.unparse([columns])}\r\n`] : [];
    let rows = 0;
    let unreadable = 0;
    setState({ rows, unreadable });
    try {
      for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
        const page = await readPage({ after, top: TOP, signal });
        after = page.next;
        rows += page.items.length;
        unreadable += countUnreadable(columns, page.items);
        if (page.items.length > 0)
          parts.push(format === 'csv' ? toCsv(entity, columns, page.items) : toNdjson(page.items));
        setState({ rows, unreadable });
      }
      saveFile(`${entity.name}.${format}`, parts, format === 'csv' ? 'text/csv' : 'application/x-ndjson');
      setState({ rows, unreadable, isDone: true });
    } catch (error) {
      setState({ rows, unreadable, error });
    }
  };
  return (
    <section aria-label="Export">
      <h2>Export</h2>
      <fieldset>
        <legend>Format</legend>
        {(['ndjson', 'csv'] as const).map((each) => (
          <label key={each}>
            <input type="radio" name="format" checked={format === each} onChange={() => setFormat(each)} />
            {each.toUpperCase()}
          </label>
        ))}
      </fieldset>
      {!isRunning && (
        <ReadForm
          key={JSON.stringify(query)}
          entity={entity}
          ways={ways}
          query={query}
          action="Export"
          onRead={start}
        />
      )}
      {isRunning && (
        <div class="actions">
          <span role="status" aria-busy="true">
            {plural(state.rows, 'row')} read
          </span>
          <button
            type="button"
            class="secondary outline"
            onClick={() => controller.current?.abort(new Error('The export was canceled.'))}
          >
            Cancel
          </button>
        </div>
      )}
      <ErrorNotice error={state?.error} title="The export failed" />
      {state?.isDone && <Notice kind="good">{plural(state.rows, 'row')} exported.</Notice>}
      {state?.isDone && state.unreadable > 0 && (
        <Notice kind="bad">
          {plural(state.unreadable, 'value')} cannot be read and will be empty in the file. An import of the file that
          replaces rows would remove them.
        </Notice>
      )}
    </section>
  );
}
