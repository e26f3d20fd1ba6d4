# A Debian package: cpack --config build/release/CPackConfig.cmake -B DIR.
# dpkg-shlibdeps finds the packages of the libraries that its programs link.
# This file lists the packages of the programs that they start.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Lockstep maintainers <lockstep@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "trains GPT-2 by several ways of agreeing on the next parameters")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, python3, python3-jinja2")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "gnuplot-nox, fonts-dejavu-core, iproute2, openssh-client, python3-pandas")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gcc, pkg-config, libsimgrid-dev")
include(CPack)
