import { app } from '@azure/functions';
import { startApp } from '../lib/app.ts';
import { traced } from '../lib/telemetry/invocation.ts';
import { stopTelemetry } from '../lib/telemetry/telemetry.ts';

/** With settings that are not usable the app does not start: the reason is in the log, and no request is half served. */
app.hook.appStart(startApp);

app.hook.preInvocation((invocation) => {
  invocation.functionHandler = traced(invocation.functionHandler, invocation.invocationContext);
});

app.hook.appTerminate(stopTelemetry);
