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
/** Counts and numbers of slots are whole. */
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const MONTH_S = 28 * DAY_S;
const YEAR_S = 365 * DAY_S;
/**
 * Per distance of two ticks: their text, and the texts below it where a year or a day begins. uPlot's own texts have 12 hours and
 * months before days. https://github.com/leeoniya/uPlot/blob/master/docs/README.md#axis--grid-opts
 */
const TIME_TEXTS = [
  [YEAR_S, '{YYYY}', null, null, null, null, null, null, 1],
  [MONTH_S, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [DAY_S, '{MM}-{DD}', '\n{YYYY}', null, null, null, null, null, 1],
  [1, '{HH}:{mm}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
];

/** Counts as bars. A screen reader reads the text and the table beside it. */
export function Chart({ xs, counts, isTime }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const color = () => getComputedStyle(element).color;
    const accent = () => getComputedStyle(element).getPropertyValue('--pico-primary');
    // Half of a bar at both ends is otherwise outside.
    const half = ((xs[1] ?? 0) - (xs[0] ?? 0) || 1) / 2;
    const axis = { stroke: color, grid: { stroke: () => getComputedStyle(element).getPropertyValue('--line') } };
    const { bars } = uPlot.paths;
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), UTC),
        scales: {
          x: { time: isTime, range: (_, min, max) => [min - half, max + half] },
          y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
        },
        axes: [
          isTime ? { ...axis, values: TIME_TEXTS } : { ...axis, incrs: WHOLE_STEPS },
          { ...axis, size: 60, incrs: WHOLE_STEPS },
        ],
        series: [
          { label: isTime ? 'Time' : 'Slot', ...(isTime ? { value: '{YYYY}-{MM}-{DD} {HH}:{mm}:{ss} UTC' } : {}) },
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
