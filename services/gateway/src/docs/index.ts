export type { DocsSettings } from './examples/context.ts';
export { createGatewayDocs } from './source.ts';
