// An OpenID Connect issuer for tests: oidc-provider with a person who signs in by name, and a program with a secret.
// Arguments: port, then a file with its private keys (JWKS). Prints its address when it answers.
import { readFileSync } from 'node:fs';
import { Provider } from 'oidc-provider';

const [port, keys, clients] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const audience = 'https://memory.example.com';
const groups = { ann: ['project:apollo'], root: ['memory-admins'] };

const provider = new Provider(issuer, {
  jwks: JSON.parse(readFileSync(keys, 'utf8')),
  cookies: { keys: ['tests'] },
  clients: JSON.parse(readFileSync(clients, 'utf8')),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_, token) => ({ tid: 'acme', groups: groups[token.accountId] ?? [] }),
  ttl: { AccessToken: 120, ClientCredentials: 120 },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'memory',
        audience: resource,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});

const server = provider.listen(Number(port), '127.0.0.1', () => console.log(issuer));
process.stdin.on('end', () => server.close(() => process.exit(0))).resume();
