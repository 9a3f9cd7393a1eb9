import { Component, type ComponentChildren } from 'preact';
import { ErrorNotice } from './notice.tsx';

/** Shows the error of a page in its place, so that the navigation stays. */
export class ErrorBoundary extends Component<{ readonly children: ComponentChildren }, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {};

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === undefined ? this.props.children : <ErrorNotice error={this.state.error} />;
  }
}
