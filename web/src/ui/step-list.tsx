import type { Explanation } from '../api/entity-client.ts';
import { toText } from './value.tsx';

type Step = Explanation['steps'][number];

/** The steps of an explanation in their order, and how many transactions they take. */
export function StepList({ explanation: { steps, transactions, rules } }: { readonly explanation: Explanation }) {
  return (
    <div class="explanation">
      <p>
        <strong>
          {transactions} storage {transactions === 1 ? 'transaction' : 'transactions'}
        </strong>
      </p>
      <ol class="steps">
        {steps.map((step, position) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes
          <li key={position} class={'read' in step ? 'read' : 'write'}>
            <StepLine step={step} />
          </li>
        ))}
      </ol>
      {[...new Set(rules?.flatMap(describeRule))].map((text) => (
        <p key={text} class="muted">
          <small>{text}</small>
        </p>
      ))}
    </div>
  );
}

/** `Rule to read expenses, list key: user: groupId is one of the caller's memberships in members`; nothing if every row is within reach. */
function describeRule(rule: Readonly<Record<string, unknown>>): string[] {
  const { entity, action, list, alternatives } = rule as unknown as AppliedRule;
  if (alternatives.some(({ terms }) => terms.length === 0)) return [];
  const lines = alternatives.map(({ role, terms }) => `${role}: ${terms.map(({ term }) => term).join(' and ')}`);
  return [`Rule to ${action} ${entity}${list === undefined ? '' : `, list ${list}`}: ${lines.join('; or ')}`];
}

interface AppliedRule {
  readonly entity: string;
  readonly action: string;
  readonly list?: string;
  readonly alternatives: readonly { readonly role: string; readonly terms: readonly { readonly term: string }[] }[];
}

interface Action {
  readonly kind: string;
  readonly row: string;
  readonly conditional: boolean;
  readonly properties: readonly string[];
}

function StepLine({ step }: { readonly step: Step }) {
  const { read, write, table, partition, row, filter, container, name, prefix, queue, does } = step;
  const actions = (step.actions ?? []) as readonly Action[];
  const place = [table, partition, row, container, name ?? prefix, queue].filter((part) => part !== undefined);
  const verb =
    read === undefined
      ? write === 'rows'
        ? `write ${actions.length} ${actions.length === 1 ? 'row' : 'rows'}`
        : `${does} ${write}`
      : read === 'rows'
        ? 'query rows'
        : `read ${read}`;
  return (
    <>
      <span class="verb">{verb}</span>{' '}
      {place.map((part, position) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes
        <span key={position}>
          {position > 0 && ' › '}
          <code>{toText(part)}</code>
        </span>
      ))}
      {filter !== undefined && <code class="filter-text">{toText(filter)}</code>}
      {actions.length > 0 && (
        <ul>
          {actions.map(({ kind, row: key, conditional, properties }) => (
            <li key={`${kind} ${key}`}>
              {kind} <code>{key}</code>
              {conditional && ' if unchanged'}
              {properties.length > 0 && <small>: {properties.join(', ')}</small>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
