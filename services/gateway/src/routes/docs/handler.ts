import { createDocsRoutes as createRoutes, type DocsClocks } from '@playline/api-docs';
import type { Route } from '@playline/http';
import type { DocsSettings } from '../../docs/examples/context.ts';
import { createGatewayDocs } from '../../docs/source.ts';

/** Every document of the gateway, one route each: public, without a key, readable from any origin. */
export function createDocsRoutes(settings: DocsSettings, clocks: Partial<DocsClocks> = {}): Route[] {
  return createRoutes((nowMs) => createGatewayDocs({ ...settings, nowMs }), clocks);
}
