// host.c - see host.h.

#include "message/host.h"

#include "base/base.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <string.h>

in_addr_t host_address(const char *name)
{
    const struct addrinfo want = {.ai_family = AF_INET,
                                  .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct ifaddrs *all = NULL;
    in_addr_t address = 0;
    if (getifaddrs(&all))
        all = NULL;
    for (const struct ifaddrs *i = all; i && !address; i = i->ifa_next) {
        const struct sockaddr_in *a = (const void *)i->ifa_addr;
        if (a && a->sin_family == AF_INET && !strcmp(i->ifa_name, name))
            address = a->sin_addr.s_addr;
    }
    if (all)
        freeifaddrs(all);
    if (!address && !getaddrinfo(name, NULL, &want, &found)) {
        address = ((const struct sockaddr_in *)(const void *)found->ai_addr)
                      ->sin_addr.s_addr;
        freeaddrinfo(found);
    }
    return address;
}

int host_of(const char *endpoint, char name[MESSAGE_ENDPOINT])
{
    const char *port = strrchr(endpoint, ':');
    if (strncmp(endpoint, "tcp://", 6) || port < endpoint + 6)
        return -1;
    return text_into(name, MESSAGE_ENDPOINT, "%.*s", (int)(port - endpoint - 6),
                     endpoint + 6);
}

int host_numbers(const char *endpoint, char out[MESSAGE_ENDPOINT])
{
    char name[MESSAGE_ENDPOINT] = "", address[INET_ADDRSTRLEN];
    struct in_addr a = {0};
    if (!host_of(endpoint, name))
        a.s_addr = host_address(name);
    if (!a.s_addr && isalpha((unsigned char)*name))
        return fail("cannot listen on %s: no host or interface of this name",
                    endpoint);
    if (!a.s_addr)
        return text_into(out, MESSAGE_ENDPOINT, "%s", endpoint);
    inet_ntop(AF_INET, &a, address, sizeof address);
    return text_into(out, MESSAGE_ENDPOINT, "tcp://%s%s", address,
                     strrchr(endpoint, ':'));
}
