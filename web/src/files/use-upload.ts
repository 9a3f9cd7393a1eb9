import { useEffect, useRef, useState } from 'preact/hooks';
import type { AttachmentDescription, Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { formatCount } from '../ui/format.ts';
import { formatBytes } from './format-bytes.ts';

interface Sending {
  readonly sent: number;
  readonly total: number;
  readonly error?: unknown;
  /** Set when the file is stored: which way its bytes went. */
  readonly way?: 'storage' | 'api';
}

interface UploadTarget {
  readonly entity: string;
  readonly rowKey: Values;
  readonly field: string;
  readonly onDone: () => void;
}

/** Sends one file at a time, with its progress. Leaving the page ends the upload. */
export function useUpload({ entity, rowKey, field, onDone }: UploadTarget) {
  const { api } = useApp();
  const [state, setState] = useState<Sending>();
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(), []);
  const start = async (file: File, problem: string | undefined) => {
    const total = file.size;
    if (problem) return setState({ sent: 0, total, error: new Error(problem) });
    setState({ sent: 0, total });
    const running = new AbortController();
    controller.current = running;
    const { signal } = running;
    try {
      const { costs } = await api.measure(async (measured) => {
        const client = api.entity(entity).files[field];
        await client?.put(rowKey, file, { signal: measured, onProgress: (sent) => setState({ sent, total }) });
      }, signal);
      // Bytes that go to storage are sent by XMLHttpRequest, which is not measured.
      setState({ sent: total, total, way: costs.some(({ method }) => method === 'PUT') ? 'api' : 'storage' });
      onDone();
    } catch (error) {
      if (signal.aborted) setState(undefined);
      else setState({ sent: 0, total, error });
    }
  };
  return {
    state,
    isSending: state !== undefined && state.error === undefined && state.way === undefined,
    start,
    cancel: () => controller.current?.abort(new Error('The upload was canceled.')),
  };
}

/** Why the file would be rejected, if the browser can tell. */
export function uploadError(file: File, { types, maxBytes }: AttachmentDescription): string | undefined {
  if (file.type && !types.includes(file.type)) return `The type must be ${types.join(', ')}; got ${file.type}.`;
  if (file.size > maxBytes) {
    const size = formatBytes(file.size);
    const most = formatBytes(maxBytes);
    // A file that is a little too large must not read "5 MB; at most 5 MB".
    return `The file has ${size === most ? `${formatCount(file.size)} bytes` : size}; at most ${most} are accepted.`;
  }
  return undefined;
}
