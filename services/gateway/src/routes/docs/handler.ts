import { createDocsRoutes as createRoutes, type DocsClocks } from '@playline/api-docs';
import type { Route } from '@playline/http';
import { createGatewayDocs, type DocsSettings } from '../../docs/index.ts';

/** Every document of the gateway, one route each: public, without a key, readable from any origin. */
export function createDocsRoutes(settings: DocsSettings, clocks: Partial<DocsClocks> = {}): Route[] {
  return createRoutes((nowMs) => createGatewayDocs({ ...settings, nowMs }), clocks);
}
