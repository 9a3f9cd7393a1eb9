import { useEffect, useState } from 'preact/hooks';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { findPreview, toLinkType } from './blob-types.ts';
import { formatBytes } from './format-bytes.ts';
import type { StoredFile } from './stored-file.ts';

interface PreviewProps {
  readonly name: string;
  readonly stored: StoredFile;
  readonly load: (signal: AbortSignal) => Promise<{ readonly blob: Blob } | undefined>;
}

/** Larger files are read when the user asks for them. */
const READ_AT_ONCE_BYTES = 2_000_000;

/** Shows images, sounds and videos; other files are for saving. */
export function Preview({ name, stored, load }: PreviewProps) {
  const { type, bytes } = stored;
  const [isWanted, setWanted] = useState(type.startsWith('image/') && bytes <= READ_AT_ONCE_BYTES);
  return (
    <>
      <p class="summary">
        {type}, {formatBytes(bytes)}
      </p>
      {isWanted ? (
        <Loaded name={name} stored={stored} load={load} />
      ) : (
        <button type="button" class="secondary outline" onClick={() => setWanted(true)}>
          Load the file
        </button>
      )}
    </>
  );
}

function Loaded({ name, stored, load }: PreviewProps) {
  const { result, error } = useLoaded(load, name);
  const [urls, setUrls] = useState<{ readonly shown: string; readonly saved: string }>();
  const blob = result?.blob;
  useEffect(() => {
    if (!blob) return;
    const toUrl = (type: string) => URL.createObjectURL(new Blob([blob], { type }));
    const created = { shown: toUrl(stored.type), saved: toUrl(toLinkType(stored.type)) };
    setUrls(created);
    return () => {
      for (const url of Object.values(created)) URL.revokeObjectURL(url);
    };
  }, [blob, stored.type]);
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!urls) return <Loading what="the file" />;
  const kind = findPreview(stored.type);
  return (
    <>
      {kind === 'image' && <img class="preview" src={urls.shown} alt={`The file ${name}`} />}
      {kind === 'audio' && (
        // biome-ignore lint/a11y/useMediaCaption: a stored file has no captions
        <audio controls src={urls.shown} />
      )}
      {kind === 'video' && (
        // biome-ignore lint/a11y/useMediaCaption: a stored file has no captions
        <video class="preview" controls src={urls.shown} />
      )}
      <p>
        <a href={urls.saved} download={name}>
          Save the file
        </a>
      </p>
    </>
  );
}
