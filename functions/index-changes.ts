import { app } from '@azure/functions';
import { consumer } from '../lib/app.ts';
import { consumeIntent } from '../lib/engine/consume/consume.ts';
import { toMessage } from '../lib/engine/consume/queue-message.ts';
import { INDEX_CHANGES_QUEUE as queueName } from '../lib/engine/reconcile/intent.ts';

/** Makes indexes in other partitions agree with the entities that changed. */
app.storageQueue('index-changes', {
  queueName,
  connection: 'AzureWebJobsStorage',
  handler: async (body, context) => consumeIntent(await consumer(context), toMessage(queueName, body, context)),
});
