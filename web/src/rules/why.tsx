import { useState } from 'preact/hooks';
import type { Api } from '../api/api.ts';
import { formatCosts, type Measured } from '../api/cost.ts';
import type { Entity, Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { toText } from '../ui/value.tsx';
import './rules.css';

const ACTIONS = ['read', 'create', 'update', 'delete'] as const;

interface Term {
  readonly term: string;
  readonly caller?: readonly unknown[];
  readonly holds?: boolean;
  readonly row?: unknown;
}

interface Alternative {
  readonly role: string;
  readonly transition?: { readonly number: number; readonly side: string };
  readonly hasRole: boolean;
  readonly allows: boolean;
  readonly terms: readonly Term[];
}

interface Decided {
  readonly allowed: boolean;
  /** Set if no alternative could be compared. */
  readonly refused?: string;
  readonly alternatives: readonly Alternative[];
}

type Answer = Readonly<Record<(typeof ACTIONS)[number], Decided>> & { readonly hidden: readonly string[] };

interface Props {
  readonly entity: Entity;
  readonly rowKey: Values;
}

/** For operators: what a caller may do with the row, and the term that decides. */
export function Why({ entity, rowKey }: Props) {
  return (
    <details class="part">
      <summary>
        <h2>What a caller may do</h2>
      </summary>
      <Question entity={entity} rowKey={rowKey} />
    </details>
  );
}

function Question({ entity, rowKey }: Props) {
  const { api, model } = useApp();
  const [subject, setSubject] = useState('');
  const [roles, setRoles] = useState<readonly string[]>([]);
  const [claims, setClaims] = useState('');
  const [state, setState] = useState<{ readonly answer?: Measured<Answer>; readonly error?: unknown }>({});
  const [isBusy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true);
    const caller = { subject, roles, claims: parseClaims(claims) };
    const question = { entity: entity.name, key: rowKey, caller };
    setState(
      await api
        .measure((signal) => send(api, question, signal))
        .then(
          (answer) => ({ answer }),
          (error: unknown) => ({ error }),
        ),
    );
    setBusy(false);
  };
  return (
    <>
      <form
        class="why"
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <label>
          Subject (the claim sub)
          <input required value={subject} onInput={({ currentTarget }) => setSubject(currentTarget.value)} />
        </label>
        <fieldset>
          <legend>Roles</legend>
          {model.roles.map((role) => (
            <label key={role}>
              <input
                type="checkbox"
                checked={roles.includes(role)}
                onChange={({ currentTarget: { checked } }) =>
                  setRoles(checked ? [...roles, role] : roles.filter((each) => each !== role))
                }
              />
              {role}
            </label>
          ))}
        </fieldset>
        <label>
          Verified claims, one name=value a line
          <textarea rows={2} value={claims} onInput={({ currentTarget }) => setClaims(currentTarget.value)} />
        </label>
        <button type="submit" disabled={isBusy} aria-busy={isBusy}>
          Explain
        </button>
      </form>
      <ErrorNotice error={state.error} />
      {state.answer && (
        <div class="decisions" role="status">
          <p class="muted">
            <small>A change must be allowed for the row before and after it.</small>
          </p>
          {ACTIONS.map((action) => (
            <Decision key={action} action={action} decision={state.answer?.result[action]} />
          ))}
          {state.answer.result.hidden.length > 0 && <p>Hidden fields: {state.answer.result.hidden.join(', ')}</p>}
          <p class="summary">
            <small>{formatCosts(state.answer.costs)}</small>
          </p>
        </div>
      )}
    </>
  );
}

function Decision({ action, decision }: { readonly action: string; readonly decision: Decided | undefined }) {
  if (!decision) return null;
  const { allowed, refused, alternatives } = decision;
  const mine = alternatives.filter(({ hasRole }) => hasRole);
  const others = [...new Set(alternatives.filter(({ hasRole }) => !hasRole).map(({ role }) => role))];
  return (
    <section aria-label={action}>
      <h3>
        {action} <Verdict isGood={allowed}>{allowed ? 'allowed' : 'not allowed'}</Verdict>
      </h3>
      <ul>
        {mine.map(({ role, terms, transition }, position) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes
          <li key={position}>
            <code>{role}</code>
            {transition && ` ${transition.side} change ${transition.number}`}
            {terms.length === 0 && ' every row'}
            {terms.length > 0 && (
              <ul>
                {terms.map((term) => (
                  <TermLine key={term.term} {...term} />
                ))}
              </ul>
            )}
          </li>
        ))}
        {others.length > 0 && <li class="muted">Not a role of the caller: {others.join(', ')}</li>}
        {alternatives.length === 0 && <li class="muted">{refused ?? 'No role may.'}</li>}
      </ul>
    </section>
  );
}

function TermLine({ term, caller, holds, row }: Term) {
  const mine = caller && (caller.length > 0 ? caller.map(toText).join(', ') : 'nothing');
  return (
    <li>
      {holds !== undefined && <Verdict isGood={holds}>{holds ? 'yes' : 'no'}</Verdict>} {term}
      <br />
      <small>
        {[
          ...(holds === undefined ? [] : [`row: ${row === undefined ? 'no value' : toText(row)}`]),
          ...(mine === undefined ? [] : [`caller: ${mine}`]),
        ].join(' · ')}
      </small>
    </li>
  );
}

function Verdict({ isGood, children }: { readonly isGood: boolean; readonly children: string }) {
  return <span class={`verdict ${isGood ? 'good' : 'bad'}`}>{children}</span>;
}

/** A repeated name is a list. */
function parseClaims(text: string): Record<string, string | readonly string[]> {
  const pairs = text.split('\n').flatMap((line) => {
    const [name = '', ...value] = line.split('=');
    return name.trim() === '' ? [] : [[name.trim(), value.join('=').trim()] as const];
  });
  const groups = Map.groupBy(pairs, ([name]) => name);
  return Object.fromEntries(
    [...groups].map(([name, all]) => {
      const values = all.map(([, value]) => value);
      return [name, values.length > 1 ? values : (values[0] ?? '')];
    }),
  );
}

async function send(api: Api, body: object, signal: AbortSignal): Promise<Answer> {
  return JSON.parse((await api.send({ method: 'POST', path: '/operations/why', body, signal })).text);
}
