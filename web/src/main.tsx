import { render } from 'preact';
import '@picocss/pico/css/pico.min.css';
import './ui/styles/base.css';
import './ui/styles/frame.css';
import './ui/styles/parts.css';
import './ui/styles/lists.css';
import './ui/styles/rows.css';
import './ui/styles/charts-and-files.css';
import './ui/styles/cards.css';
import { Start } from './app/start.tsx';
import { applyTheme } from './app/theme.ts';

applyTheme();
render(<Start />, document.getElementById('app') ?? document.body);
