import { useState } from 'preact/hooks';

interface Props {
  readonly button: string;
  readonly isBusy: boolean;
  readonly act: (subject: string) => void;
}

/** Asks for the subject of a user. */
export function SubjectForm({ button, isBusy, act }: Props) {
  const [subject, setSubject] = useState('');
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        if (subject.trim() !== '') act(subject.trim());
      }}
    >
      <label>
        Subject of the user (the claim sub, in the audit log the author of a change)
        <input
          required
          maxLength={1_000}
          value={subject}
          onInput={({ currentTarget }) => setSubject(currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={isBusy}>
        {button}
      </button>
    </form>
  );
}
