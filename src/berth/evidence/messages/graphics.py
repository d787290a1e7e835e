"""Graphics in containers: Vulkan, EGL, GLX and OpenCL look for the driver's part in places that the runtime fills only
where the container asks for it."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "image.graphics_unasked",
        (
            "failed to find any icd",
            "found no drivers!",
            "vkcreateinstance failed",
            "could not initialize vulkan",
            "no vulkan-capable",
            "failed to find vulkan",
            "no suitable vulkan",
            "eglinitialize() failed",
            "failed to initialize egl display",
            "egl_not_initialized",
            "eglinitialize failed",
            "unable to initialize egl",
            "eglquerydevicesext",
            "egl device",
            "no device could be created. some known system issues",
            "matching fbconfigs or visuals found",
            "failed to load driver: swrast",
            "failed to open nvidia-drm",
            "failed to open swrast",
            "platform_not_found_khr",
            "no opencl platforms found",
            "number of platforms",
            "failed to create egl",
            "glew initalization error",
            "glew initialization error",
            "opengl platform library has not been loaded",
            "gladloadgl error",
            "no glxfbconfigs returned",
            "finding matching fbconfig",
            "glxbadfbconfig",
            "double-buffered visual",
            "nvidia-drm_dri.so",
            "failed to retrieve device information",
            "failed to choose pdev",
            "llvmpipe",
            "egl_bad_display",
            "unable to open egl display",
            "no supported renderers found",
            "vkenumeratephysicaldevices failed",
            "lavapipe is not a conformant",
            "no suitable graphics adapter",
            "optix initialization failed",
            "no opencl device",
            "cl_device_not_found",
            "failed to create nvenc session",
        ),
        r"Failed to find any ICD|Found no drivers!|vkCreateInstance failed|Could not initialize Vulkan"
        r"|No Vulkan-capable (?:device|GPU)|Failed to find Vulkan (?:device|ICD|driver)|No suitable Vulkan"
        r"|eglInitialize(?:\(\))? failed|EGL_NOT_INITIALIZED|Failed to initialize EGL display"
        r"|Unable to initialize EGL"
        r"|No device could be created\. Some known system issues"
        r"|eglQueryDevicesEXT\b[^\n]{0,60}(?:fail|0 devices|not found|no devices)"
        r"|\bno EGL devices? (?:found|available)|Cannot find EGL device"
        r"|libGL error: (?:No matching fbConfigs or visuals found|failed to load driver: swrast)"
        r"|MESA-LOADER: failed to open (?:nvidia-drm|swrast)|PLATFORM_NOT_FOUND_KHR|No OpenCL platforms found"
        r"|GLEW init(?:al|ial)ization error|OpenGL platform library has not been loaded|gladLoadGL error"
        r"|No GLXFBConfigs returned|Failed to finding matching FBConfig|GLXBadFBConfig|Double-buffered visual"
        r"|unable to load driver: nvidia-drm_dri\.so|MESA-LOADER: failed to retrieve device information"
        r"|ZINK: failed to choose pdev|(?:OpenGL renderer string|GL_RENDERER|deviceName)\W{1,4}llvmpipe"
        r"|EGL_BAD_DISPLAY"
        r"|Unable to open EGL display|No supported renderers found|vkEnumeratePhysicalDevices failed"
        r"|lavapipe is not a conformant|No suitable graphics adapter|OptiX initialization failed|No OpenCL device"
        r"|CL_DEVICE_NOT_FOUND|Failed to create NVENC session"
        r"|Number of platforms\s+0\b|Failed to create EGL (?:display|context|image|surface)",
    ),
)
