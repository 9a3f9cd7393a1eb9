import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface ChartProps {
  /** In seconds since 1970, or numbers of slots. */
  readonly xs: readonly number[];
  readonly counts: readonly number[];
  readonly isTime: boolean;
}

const HEIGHT_PX = 280;
const UTC = 'Etc/UTC';

/** Counts as bars. A screen reader reads the text and the table beside it. */
export function Chart({ xs, counts, isTime }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const color = () => getComputedStyle(element).color;
    const accent = () => getComputedStyle(element).getPropertyValue('--pico-primary');
    const axis = { stroke: color, grid: { stroke: () => getComputedStyle(element).getPropertyValue('--line') } };
    const { bars } = uPlot.paths;
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), UTC),
        scales: { x: { time: isTime }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] } },
        axes: [axis, { ...axis, size: 60 }],
        series: [
          { label: isTime ? 'UTC' : 'Slot' },
          {
            label: 'Count',
            stroke: accent,
            fill: accent,
            ...(bars ? { paths: bars({ size: [0.8, 40] }) } : {}),
            points: { show: false },
          },
        ],
      },
      [[...xs], [...counts]],
      element,
    );
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resize.observe(element);
    const theme = new MutationObserver(() => plot.redraw(false));
    theme.observe(document.documentElement, { attributes: true });
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => plot.redraw(false);
    dark.addEventListener('change', redraw);
    return () => {
      resize.disconnect();
      theme.disconnect();
      dark.removeEventListener('change', redraw);
      plot.destroy();
    };
  }, [xs, counts, isTime]);
  return <div ref={place} class="chart" aria-hidden="true" />;
}
