const INERT = /^(audio|video)\/|^image\/(?!.*(svg|xml))/;
const SVG = /^image\/svg\+xml\b/;
const DOWNLOAD = 'application/octet-stream';

/** How a file is shown in the page; undefined if it is only saved. */
export function findPreview(type: string): 'image' | 'audio' | 'video' | undefined {
  const [kind] = type.split('/');
  if (!INERT.test(type) && !SVG.test(type)) return undefined;
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : undefined;
}

/**
 * The type of a blob whose URL the user can open. A page of a blob URL has the origin of the console, so the scripts of HTML, SVG
 * and XML would act as the user.
 */
export function toLinkType(type: string): string {
  return INERT.test(type) ? type : DOWNLOAD;
}
