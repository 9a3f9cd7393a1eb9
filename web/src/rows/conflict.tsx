import { useState } from 'preact/hooks';
import type { Values } from '../api/model.ts';
import { UnsavedChanges } from '../app/unsaved-changes.tsx';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { ScrollRegion } from '../ui/scroll-region.tsx';
import { FullValue, toText } from '../ui/value.tsx';

interface ConflictProps {
  /** The values that the user started from. */
  readonly base: Values;
  /** The change that was rejected; null removes a value. */
  readonly mine: Values;
  /** The values as they are now. */
  readonly theirs: Values;
  readonly onSave: (patch: Values) => Promise<void>;
  readonly onDiscard: () => void;
}

type Choice = 'mine' | 'theirs';

/** Shows both changes side by side. The user chooses for each field that both may have changed, and saves under the new ETag. */
export function Conflict({ base, mine, theirs, onSave, onDiscard }: ConflictProps) {
  const [choices, setChoices] = useState<Readonly<Record<string, Choice>>>({});
  const [error, setError] = useState<unknown>();
  const isChanged = (field: string) => toText(base[field]) !== toText(theirs[field]);
  const fields = [...new Set([...Object.keys(mine), ...Object.keys({ ...base, ...theirs }).filter(isChanged)])];
  const choiceOf = (field: string): Choice =>
    Object.hasOwn(mine, field) ? (choices[field] ?? (isChanged(field) ? 'theirs' : 'mine')) : 'theirs';
  const patch = Object.fromEntries(Object.entries(mine).filter(([field]) => choiceOf(field) === 'mine'));
  return (
    <section class="conflict" aria-label="Conflict">
      <UnsavedChanges />
      <Notice kind="bad">
        <strong>The row was changed since you read it.</strong>
        <p>Nothing was saved. Choose a value for each field, and save again.</p>
      </Notice>
      <ScrollRegion label="Both changes">
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">You started from</th>
              <th scope="col">Your change</th>
              <th scope="col">Now stored</th>
            </tr>
          </thead>
          <tbody>
            {fields.map((field) => (
              <tr key={field}>
                <th scope="row">{field}</th>
                <td>
                  <FullValue value={base[field]} />
                </td>
                {(['mine', 'theirs'] as const).map((side) => {
                  const value = side === 'mine' ? mine[field] : theirs[field];
                  const isOpen = Object.hasOwn(mine, field);
                  return (
                    <td key={side} class={choiceOf(field) === side ? 'chosen' : ''}>
                      {isOpen ? (
                        <label>
                          <input
                            type="radio"
                            name={`choice-${field}`}
                            checked={choiceOf(field) === side}
                            onChange={() => setChoices({ ...choices, [field]: side })}
                          />
                          <FullValue value={value ?? undefined} />
                        </label>
                      ) : side === 'theirs' ? (
                        <FullValue value={value} />
                      ) : (
                        <span class="muted">not changed</span>
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollRegion>
      <ErrorNotice error={error} />
      <div class="actions">
        <button
          type="button"
          disabled={Object.keys(patch).length === 0}
          onClick={() => onSave(patch).catch((failed: unknown) => setError(failed))}
        >
          Save my choice
        </button>
        <button type="button" class="secondary outline" onClick={onDiscard}>
          Keep what is stored
        </button>
      </div>
    </section>
  );
}
