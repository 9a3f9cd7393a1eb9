import { init } from 'echarts';

/** Charts as SVG, without a browser. They have the colors of the reader's scheme, light or dark. */

export interface Line {
  readonly name: string;
  readonly values: readonly number[];
}

export interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
}

export interface Chart {
  readonly title: string;
  /** Of the horizontal axis. */
  readonly x: { readonly name: string; readonly values: readonly number[] };
  /** Of the vertical axis. */
  readonly y: string;
  readonly panels: readonly Panel[];
}

const PANEL_WIDTH = 270;
const PANEL_HEIGHT = 180;
const MARGIN = { top: 84, left: 64, right: 20, bottom: 46 };
const COLUMNS = 3;
const LINE_COLORS = ['#2f81f7', '#d4732a', '#2da44e'];
/** Stands for the color of the text, which the style sheet of the image decides. */
const TEXT = '#010203';
const STYLE = `<style>svg{color:#1f2328;font-family:system-ui,sans-serif}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>`;

/** 1K, 10K and 1M, so that each value has room for its label. */
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact' });

/** Renders panels side by side, each with its own vertical axis, which begins at 0. */
export function renderChart({ title, x, y, panels }: Chart): string {
  const columns = panels.length === 4 ? 2 : Math.min(COLUMNS, panels.length);
  const rows = Math.ceil(panels.length / columns);
  const width = columns * PANEL_WIDTH;
  const height = MARGIN.top - 40 + rows * PANEL_HEIGHT + 16;
  const placeOf = (index: number) => ({
    left: (index % columns) * PANEL_WIDTH,
    top: MARGIN.top - 40 + Math.floor(index / columns) * PANEL_HEIGHT,
  });
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  const text = { color: TEXT };
  const names = [...new Set(panels.flatMap(({ lines }) => lines.map(({ name }) => name)))];
  chart.setOption({
    animation: false,
    color: LINE_COLORS,
    title: [
      { text: title, left: 'center', top: 2, textStyle: { ...text, fontSize: 15 } },
      ...panels.map((panel, index) => ({
        text: panel.title,
        left: placeOf(index).left + MARGIN.left - 4,
        top: placeOf(index).top + 16,
        textStyle: { ...text, fontSize: 12 },
      })),
    ],
    legend: { data: names, top: 24, textStyle: text },
    grid: panels.map((_, index) => ({
      left: placeOf(index).left + MARGIN.left,
      top: placeOf(index).top + 44,
      width: PANEL_WIDTH - MARGIN.left - MARGIN.right,
      height: PANEL_HEIGHT - 44 - MARGIN.bottom,
    })),
    xAxis: panels.map((_, gridIndex) => ({
      gridIndex,
      type: 'category',
      data: x.values.map((value) => COMPACT.format(value)),
      name: x.name,
      nameLocation: 'middle',
      nameGap: 24,
      nameTextStyle: text,
      axisLabel: { ...text, interval: 0 },
      axisLine: { lineStyle: text },
    })),
    yAxis: panels.map((_, gridIndex) => ({
      gridIndex,
      type: 'value',
      name: gridIndex % columns === 0 ? y : '',
      nameLocation: 'middle',
      nameGap: 44,
      nameTextStyle: text,
      axisLabel: text,
      splitNumber: 3,
      splitLine: { lineStyle: { ...text, opacity: 0.15 } },
    })),
    series: panels.flatMap(({ lines }, index) =>
      lines.map(({ name, values }) => ({
        name,
        type: 'line',
        xAxisIndex: index,
        yAxisIndex: index,
        data: [...values],
        symbolSize: 6,
        itemStyle: { color: LINE_COLORS[names.indexOf(name)] },
      })),
    ),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return `${renumber(svg)
    .replaceAll(TEXT, 'currentColor')
    .replace(/(<svg[^>]*>)/, `$1${STYLE}`)}\n`;
}

/** The library numbers classes and paths over all charts of a process. */
function renumber(svg: string): string {
  const ids = new Map<string, string>();
  return svg.replaceAll(/\bzr\d+-c(?:ls-)?\d+/g, (id) => {
    ids.set(id, ids.get(id) ?? `c${ids.size}`);
    return String(ids.get(id));
  });
}
