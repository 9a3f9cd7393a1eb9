import { app } from '@azure/functions';
import { startApp } from '../lib/app.ts';
import { traced } from '../lib/telemetry/invocation.ts';
import { stopTelemetry } from '../lib/telemetry/telemetry.ts';

// It never throws: the real host would then serve nothing, and not say why.
app.hook.appStart(startApp);

app.hook.preInvocation((invocation) => {
  invocation.functionHandler = traced(invocation.functionHandler, invocation.invocationContext);
});

app.hook.appTerminate(stopTelemetry);
