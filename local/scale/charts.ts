import { init } from 'echarts';

/** Charts as SVG, without a browser. They have the colors of the reader's scheme, light or dark. */

interface Line {
  readonly name: string;
  readonly values: readonly number[];
}

export interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
}

export interface Chart {
  readonly title: string;
  /** The horizontal axis. */
  readonly x: { readonly name: string; readonly values: readonly number[] };
  /** The name of the vertical axis. */
  readonly y: string;
  readonly panels: readonly Panel[];
  /** True for a vertical axis of powers of ten; else it begins at 0. */
  readonly isLogarithmic?: boolean;
  /** A value with a horizontal line of its own. */
  readonly limit?: number;
  readonly panelWidth?: number;
  readonly panelHeight?: number;
}

const PANEL_WIDTH = 270;
const PANEL_HEIGHT = 180;
const MARGIN = { top: 84, left: 64, right: 20, bottom: 46 };
const COLUMNS = 3;
const LINE_COLORS = ['#2f81f7', '#d4732a', '#2da44e', '#a371f7', '#e5534b'];
/** Stands for the color of the text, which the style sheet of the image decides. */
const TEXT = '#010203';
const STYLE = `<style>svg{color:#1f2328;font-family:system-ui,sans-serif}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>`;

/** 1K, 10K and 1M, so that each value has room for its label. */
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact' });

/** Renders panels side by side, each with its own vertical axis. */
export function renderChart({ panelWidth = PANEL_WIDTH, panelHeight = PANEL_HEIGHT, ...chart }: Chart): string {
  const { title, x, y, panels, isLogarithmic, limit } = chart;
  const columns = panels.length === 4 ? 2 : Math.min(COLUMNS, panels.length);
  const rows = Math.ceil(panels.length / columns);
  const width = columns * panelWidth;
  const height = MARGIN.top - 40 + rows * panelHeight + 16;
  const placeOf = (index: number) => ({
    left: (index % columns) * panelWidth,
    top: MARGIN.top - 40 + Math.floor(index / columns) * panelHeight,
  });
  const canvas = init(null, null, { renderer: 'svg', ssr: true, width, height });
  const text = { color: TEXT };
  const names = [...new Set(panels.flatMap(({ lines }) => lines.map(({ name }) => name)))];
  canvas.setOption({
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
    legend: { data: names, top: 24, itemGap: 24, textStyle: text },
    grid: panels.map((_, index) => ({
      left: placeOf(index).left + MARGIN.left,
      top: placeOf(index).top + 44,
      width: panelWidth - MARGIN.left - MARGIN.right,
      height: panelHeight - 44 - MARGIN.bottom,
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
    yAxis: panels.map(({ lines }, gridIndex) => ({
      gridIndex,
      type: isLogarithmic ? 'log' : 'value',
      name: gridIndex % columns === 0 ? y : '',
      nameLocation: 'middle',
      nameGap: 44,
      nameTextStyle: text,
      axisLabel: isLogarithmic ? { ...text, formatter: (value: number) => COMPACT.format(value) } : text,
      ...(isLogarithmic ? decadesOf(lines) : { splitNumber: 3 }),
      splitLine: { lineStyle: { ...text, opacity: 0.15 } },
    })),
    series: panels.flatMap(({ lines }, index) =>
      lines.map(({ name, values }, line) => ({
        name,
        ...(limit === undefined || line > 0 ? {} : { markLine: limitLine(limit) }),
        type: 'line',
        xAxisIndex: index,
        yAxisIndex: index,
        data: [...values],
        symbolSize: 6,
        itemStyle: { color: LINE_COLORS[names.indexOf(name)] },
      })),
    ),
  });
  const svg = canvas.renderToSVGString();
  canvas.dispose();
  return `${renumber(svg)
    .replaceAll(TEXT, 'currentColor')
    .replace(/(<svg[^>]*>)/, `$1${STYLE}`)}\n`;
}

/** From the power of ten below all values to the one above. */
function decadesOf(lines: readonly Line[]) {
  const logarithms = lines.flatMap(({ values }) => values.map(Math.log10));
  return { min: 10 ** Math.floor(Math.min(...logarithms)), max: 10 ** Math.ceil(Math.max(...logarithms)) };
}

function limitLine(yAxis: number) {
  const lineStyle = { color: TEXT, type: 'dashed' as const, width: 1 };
  return { symbol: 'none', silent: true, label: { show: false }, lineStyle, data: [{ yAxis }] };
}

/** The library numbers classes and paths over all charts of a process. */
function renumber(svg: string): string {
  const ids = new Map<string, string>();
  return svg.replaceAll(/\bzr\d+-c(?:ls-)?\d+/g, (id) => {
    ids.set(id, ids.get(id) ?? `c${ids.size}`);
    return String(ids.get(id));
  });
}
