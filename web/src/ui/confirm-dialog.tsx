import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Dialog } from './dialog.tsx';
import { ErrorNotice } from './notice.tsx';

interface ConfirmDialogProps {
  readonly title: string;
  /** The text of the button. */
  readonly confirm: string;
  /** True if what is lost may not come back. */
  readonly isDangerous?: boolean;
  /** False until what to do is known. */
  readonly isReady?: boolean;
  /** The dialog shows its error, and closes otherwise. */
  readonly act: () => unknown;
  /** Called after the action. Default: `onClose`. */
  readonly onDone?: () => void;
  readonly onClose: () => void;
  /** What would happen, and what it costs. */
  readonly children?: ComponentChildren;
}

/** Says what an action would do, and asks before it is done. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const { title, confirm, isDangerous = false, isReady = true, act, onClose, onDone = onClose, children } = props;
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const go = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await act();
      onDone();
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <footer class="actions">
        <ErrorNotice error={error} title={`${confirm} failed`} />
        <button
          type="button"
          class={isDangerous ? 'danger' : ''}
          disabled={!isReady || isBusy}
          aria-busy={isBusy}
          onClick={go}
        >
          {confirm}
        </button>
        <button type="button" class="secondary outline" onClick={onClose}>
          Cancel
        </button>
      </footer>
    </Dialog>
  );
}
