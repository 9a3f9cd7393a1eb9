import { app } from '@azure/functions';
import { consumer } from '../lib/app.ts';
import { consumePoison } from '../lib/patterns/consume.ts';
import { ARCHIVE_QUEUE, INDEX_CHANGES_QUEUE } from '../lib/patterns/intent.ts';
import { toMessage } from '../lib/queue-message.ts';

/** Records what the host itself gave up on. */
for (const queue of [INDEX_CHANGES_QUEUE, ARCHIVE_QUEUE]) {
  const queueName = `${queue}-poison`;
  app.storageQueue(queueName, {
    queueName,
    connection: 'AzureWebJobsStorage',
    handler: async (body, context) => consumePoison(await consumer(context), toMessage(queueName, body, context)),
  });
}
