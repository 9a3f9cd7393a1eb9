import { render } from 'preact';
import '@picocss/pico/css/pico.min.css';
import './ui/styles.css';
import { Start } from './app/start.tsx';
import { applyTheme } from './app/theme.ts';

applyTheme();
render(<Start />, document.getElementById('app') ?? document.body);
