import { useId, useState } from 'preact/hooks';

interface DropZoneProps {
  readonly label: string;
  readonly hint: string;
  readonly accept: string;
  readonly onFile: (file: File) => void;
}

/** A file input onto which a file can be dropped. */
export function DropZone({ label, hint, accept, onFile }: DropZoneProps) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const take = (files: FileList | null | undefined) => {
    const [file] = files ?? [];
    if (file) onFile(file);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the input inside does the same by keyboard
    <div
      class={`drop-zone${isOver ? ' over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      <label for={id}>{label}</label>
      <input
        id={id}
        type="file"
        accept={accept}
        aria-describedby={`${id}-hint`}
        onChange={({ currentTarget }) => {
          take(currentTarget.files);
          // An empty input reports a change when the user chooses the same file again.
          currentTarget.value = '';
        }}
      />
      <small id={`${id}-hint`}>Drop a file here, or choose one. {hint}</small>
    </div>
  );
}
