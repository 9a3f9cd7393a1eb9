import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface ScrollRegionProps {
  readonly label: string;
  readonly class?: string;
  /** Gets the element that scrolls. */
  readonly region?: { current: HTMLElement | null };
  readonly children: ComponentChildren;
}

/** A region that scrolls by keyboard, too. A shade at an edge says that more columns are beyond it. */
export function ScrollRegion({ label, class: name = '', region, children }: ScrollRegionProps) {
  const own = useRef<HTMLElement>(null);
  const element = region ?? own;
  useLayoutEffect(() => (element.current ? markHiddenEdges(element.current) : undefined), [element]);
  return (
    <div class="scroll-frame">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class={`scroll ${name}`} aria-label={label} tabIndex={0} ref={element}>
        {children}
      </section>
    </div>
  );
}

/** Names the sides beyond which content is hidden in the attribute `data-more` of the frame. Returns how to stop. */
function markHiddenEdges(region: HTMLElement): () => void {
  const mark = () => {
    const hidden = region.scrollWidth - region.clientWidth;
    // The browser rounds the widths and not the position.
    const sides = [region.scrollLeft > 1 ? 'left' : '', region.scrollLeft < hidden - 1 ? 'right' : ''];
    region.parentElement?.setAttribute('data-more', sides.filter(Boolean).join(' '));
  };
  const resize = new ResizeObserver(mark);
  for (const element of [region, ...region.children]) resize.observe(element);
  region.addEventListener('scroll', mark, { passive: true });
  mark();
  return () => {
    resize.disconnect();
    region.removeEventListener('scroll', mark);
  };
}
