import { useId, useRef, useState } from 'preact/hooks';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { Explanation } from '../api/entity-client.ts';
import { canRead, type Entity, keyPath, type ReferenceDescription, type Values } from '../api/model.ts';
import { referredRow, sourceOf } from '../api/referred-row.ts';
import { useApp } from '../app/context.ts';
import { UnsavedChanges } from '../app/unsaved-changes.tsx';
import { useOutcome } from '../app/use-outcome.ts';
import { type Choices, readChoices } from '../entities/first-choices.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { StepList } from '../ui/step-list.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { FieldControl } from './field-control.tsx';
import {
  EMPTY_TEXT,
  type FieldText,
  type FormField,
  findProblems,
  type Texts,
  toPatch,
  toTexts,
  toValues,
} from './fields.ts';

interface RowFormProps {
  readonly entity: Entity;
  readonly fields: readonly FormField[];
  readonly initial: Values;
  readonly submitLabel: string;
  /** Gets all values, and those that changed. A thrown problem of the API is shown at its fields. */
  readonly onSubmit: (given: { readonly values: Values; readonly patch: Values }) => Promise<void>;
  readonly onCancel: () => void;
  /** What saving would read, write and send. */
  readonly explain?: (given: { readonly patch: Values }) => Promise<Explanation>;
}

/** A form of a row. A field shows its problem as soon as it was changed, all fields after an attempt to save. */
export function RowForm({ entity, fields, initial, submitLabel, onSubmit, onCancel, explain }: RowFormProps) {
  const before = toTexts(fields, initial);
  const [texts, setTexts] = useState<Texts>(before);
  const [touched, setTouched] = useState<readonly string[]>([]);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [explanation, setExplanation] = useState<Explanation>();
  const form = useRef<HTMLFormElement>(null);
  const begin = useOutcome();
  const problems = findProblems(fields, texts);
  const rejected = rejectedFields(error);

  const submit = async (event: Event) => {
    event.preventDefault();
    setTouched(fields.map(({ name }) => name));
    const [first] = Object.keys(problems);
    if (first !== undefined) {
      form.current?.querySelector<HTMLElement>(`[name="${CSS.escape(first)}"]`)?.focus();
      return;
    }
    const end = begin(submitLabel);
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit({ values: toValues(fields, texts), patch: toPatch(fields, before, texts) });
    } catch (failed) {
      if (!end(failed)) setError(failed);
    } finally {
      setBusy(false);
    }
  };

  const isChanged = fields.some(({ name }) => texts[name] !== before[name]);
  return (
    <form noValidate ref={form} onSubmit={submit} class="row-form">
      {/* An attempt to save whose page is left is announced. */}
      {isChanged && !isBusy && <UnsavedChanges />}
      <div class="fields">
        {fields.map((field) => (
          <FieldInput
            key={field.name}
            entity={entity}
            field={field}
            text={texts[field.name] ?? ''}
            others={{ ...initial, ...texts }}
            problem={touched.includes(field.name) ? (problems[field.name] ?? rejected[field.name]) : undefined}
            isChecked={touched.includes(field.name)}
            onText={(text) => {
              setTexts({ ...texts, [field.name]: text });
              setTouched([...touched, field.name]);
            }}
          />
        ))}
      </div>
      {entity.checks.length > 0 && <p class="muted">Required: {entity.checks.join('; ')}.</p>}
      <ErrorNotice error={error} />
      <div class="actions">
        <button type="submit" aria-busy={isBusy} disabled={isBusy}>
          {submitLabel}
        </button>
        <button type="button" class="secondary outline" disabled={isBusy} onClick={onCancel}>
          Cancel
        </button>
        {explain && (
          <button
            type="button"
            class="secondary outline"
            disabled={Object.keys(problems).length > 0}
            onClick={() =>
              explain({ patch: toPatch(fields, before, texts) }).then(setExplanation, (failed: unknown) =>
                setError(failed),
              )
            }
          >
            Show what saving would do
          </button>
        )}
      </div>
      {explanation && <StepList explanation={explanation} />}
    </form>
  );
}

/** The fields that the API rejected, with its messages. */
function rejectedFields(error: unknown): Readonly<Record<string, string>> {
  const problem = error instanceof RowkeyClientError ? error.problem : undefined;
  const listed = problem?.errors?.map(({ field, message }) => [field, message] as const) ?? [];
  return problem?.field
    ? { [problem.field]: problem.detail, ...Object.fromEntries(listed) }
    : Object.fromEntries(listed);
}

interface FieldInputProps {
  readonly entity: Entity;
  readonly field: FormField;
  readonly text: FieldText;
  /** All values of the form. */
  readonly others: Values;
  readonly problem: string | undefined;
  readonly isChecked: boolean;
  readonly onText: (text: FieldText) => void;
}

function FieldInput({ entity, field, text, others, problem, isChecked, onText }: FieldInputProps) {
  const id = useId();
  const { items, isWhole } = useChoices(entity, field.name, text) ?? { items: [], isWhole: false };
  const chosen = items.find(({ value }) => value === text);
  // A value that is not among the rows stays as it is. Only a reference excludes other values.
  const isChoice = field.reference !== undefined && isWhole && (text === '' || chosen !== undefined);
  const shown: FormField = isChoice ? { ...field, input: 'choice', choices: items } : field;
  const isOffered = !isChoice && shown.input === 'text' && items.length > 0;
  const hint = problem === undefined && !isChoice ? field.hint : '';
  const common = {
    id,
    name: field.name,
    'aria-invalid': problem !== undefined ? true : isChecked && text !== '' ? false : undefined,
    'aria-describedby': `${id}-hint ${id}-problem`,
    'aria-required': field.isRequired,
    list: isOffered ? `${id}-choices` : undefined,
  };
  return (
    <div class={field.input === 'long' || field.input === 'json' ? 'field wide' : 'field'}>
      <label for={id} id={`${id}-label`}>
        {field.name}
        {field.isRequired && <span aria-hidden="true"> *</span>}
        {field.note && <small> {field.note}</small>}
      </label>
      <FieldControl field={shown} text={text === EMPTY_TEXT ? '' : text} onText={onText} common={common} />
      {isOffered && (
        <datalist id={`${id}-choices`}>
          {items.map(({ value, text: label }) => (
            <option key={value} value={value} label={label} />
          ))}
        </datalist>
      )}
      {isOffered && chosen && chosen.text !== chosen.value && <small class="chosen">{chosen.text}</small>}
      <small id={`${id}-hint`} class="hint">
        {hint}
      </small>
      {field.reference && !isChoice && (
        <Reference key={String(text)} reference={field.reference} text={text} others={others} />
      )}
      {field.canBeEmpty && (text === '' || text === EMPTY_TEXT) && (
        <label class="empty-text">
          <input
            type="checkbox"
            checked={text === EMPTY_TEXT}
            aria-describedby={`${id}-label`}
            onChange={({ currentTarget }) => onText(currentTarget.checked ? EMPTY_TEXT : '')}
          />
          store an empty text, not “no value”
        </label>
      )}
      <small id={`${id}-problem`} class="problem" aria-live="polite">
        {problem}
      </small>
    </div>
  );
}

/** Typing goes on within this time, so that not each letter is a query. */
const TYPING_MS = 200;

/**
 * Values of a field whose rows another entity has: the first ones, and those whose label begins with what is typed. Undefined if there are none,
 * or if its rows cannot be read.
 */
function useChoices(entity: Entity, field: string, text: FieldText): Choices | undefined {
  const { api, model, user } = useApp();
  const source = sourceOf(entity, field, model, user);
  const read = async (signal: AbortSignal, typed?: string) =>
    source &&
    readChoices(api, {
      ...{ entity: source.target, field: source.reference.by, model, user, signal },
      ...(typed === undefined ? {} : { typed }),
    });
  const id = `${source?.target.name} ${source?.reference.by}`;
  const first = useLoaded((signal) => read(signal), id).result;
  const isKnown = first === undefined || first.isWhole || first.items.some(({ value }) => value === text);
  const typed = typeof text === 'string' && text !== '' && !isKnown ? text : undefined;
  const found = useLoaded(async (signal) => {
    if (typed === undefined) return undefined;
    await new Promise((resolve) => setTimeout(resolve, TYPING_MS));
    return signal.aborted ? undefined : read(signal, typed);
  }, `${id} ${typed}`).result;
  return found && found.items.length > 0 ? { ...found, isWhole: false } : first;
}

/** Names the entity to which a field refers, and looks up the row without leaving the form. */
function Reference(props: {
  readonly reference: ReferenceDescription;
  readonly text: FieldText;
  readonly others: Values;
}) {
  const { reference, text, others } = props;
  const { api, model, user } = useApp();
  const [found, setFound] = useState('');
  const target = model.entities.get(reference.to);
  const isText = typeof text === 'string' && text !== '';
  const referred = isText && target ? referredRow(target, reference, text, others) : undefined;
  const lookUp = async () => {
    if (!target || !referred) return;
    const { index, key } = referred;
    const client = api.entity(reference.to);
    try {
      const row = index === undefined ? (await client.get(key))?.values : await client.by[index]?.(key);
      setFound(row ? `${keyPath(target, row).join(' / ')} exists.` : `${reference.to} has no row ${String(text)}.`);
    } catch (error) {
      setFound(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="reference">
      <small>refers to {reference.to}</small>
      {target && canRead(target, user) && (
        <button type="button" class="secondary outline" disabled={!referred} onClick={lookUp}>
          Look up
        </button>
      )}
      <small role="status">{found}</small>
    </div>
  );
}
