import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Provider } from 'oidc-provider';

export type RealProvider = Awaited<ReturnType<typeof openRealProvider>>;

/** Opens an OpenID Connect provider that accepts every name. @param redirectUri callback URL of the portal */
export async function openRealProvider(redirectUri: string) {
  const client = { clientId: 'portal', clientSecret: 'shared-secret' };
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const issuer = new URL(`http://localhost:${(server.address() as AddressInfo).port}`);
  const provider = new Provider(issuer.origin, {
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        redirect_uris: [redirectUri],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        require_auth_time: true,
      },
    ],
    cookies: { keys: ['a key'] },
    // Without these settings, the provider generates values and logs warnings.
    jwks: { keys: [generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })] },
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 600, IdToken: 60, Interaction: 600, Session: 600 },
    features: { devInteractions: { enabled: false } },
    findAccount: (_, accountId) => ({ accountId, claims: async () => ({ sub: accountId }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    // Skips the consent page.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
  });
  const callback = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void callback(request, response);
    void interact(provider, request, response);
  });
  return {
    issuer,
    client,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

async function interact(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'POST') {
    const accountId = new URLSearchParams(await text(request)).get('name') ?? '';
    const result = { login: { accountId } };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(
    `<!doctype html><title>The provider</title><link rel="icon" href="data:,"><form method="post"><label>Name <input name="name"></label><button>Continue</button></form>`,
  );
}
