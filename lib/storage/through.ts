import { createEmptyPipeline, type HttpClient, type PipelinePolicy } from '@azure/core-rest-pipeline';

/** The client whose requests pass the policies, the first one first, on their way to the network. */
export function through(policies: readonly PipelinePolicy[], network: HttpClient): HttpClient {
  const pipeline = createEmptyPipeline();
  for (const policy of policies) pipeline.addPolicy(policy);
  return { sendRequest: (request) => pipeline.sendRequest(network, request) };
}
